package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/internal/redact"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// key needs escapes in JSON.
const key = "hunter22\n\"x\\y\""

func TestNothingButAResultShowsASecret(t *testing.T) {
	said := map[string]func(k *kb, o *pipeline.Options){
		"a provider's error": func(k *kb, _ *pipeline.Options) {
			k.invoke = func(context.Context, *provider.Request) (*tool.Result, error) {
				return nil, tool.Errorf(tool.ToolFailed, "bad key %q", key).WithDetail("%s", key).
					With("request", map[string]any{"headers": []any{key}, "n": json.Number("12345678901234567890")})
			}
		},
		"an error of no kind": func(k *kb, _ *pipeline.Options) {
			k.invoke = func(context.Context, *provider.Request) (*tool.Result, error) {
				return nil, fmt.Errorf("bad key %s", key)
			}
		},
		"why a tool is not available": func(k *kb, _ *pipeline.Options) {
			k.offer.Unmet = map[tool.Name]string{"search": "no key"}
			k.check = func() error { return fmt.Errorf("bad key %s", key) }
		},
		"why a tool is quarantined": func(k *kb, _ *pipeline.Options) {
			k.offer.Refused = map[tool.Name]string{"search": "bad key " + key}
		},
		"why a provider is down": func(k *kb, _ *pipeline.Options) {
			k.offer.Status = provider.Status{State: provider.Stopped, Reason: "bad key " + key}
		},
	}
	for name, set := range said {
		t.Run(name, func(t *testing.T) {
			k, o := newKB(), &pipeline.Options{Mask: redact.New(key, "hunter22").Mask}
			set(k, o)
			req := k.request("search", `{}`)
			req.Explain = true
			out := newPipeline(t, o).Call(t.Context(), req)
			if out.Err == nil {
				t.Fatal("no error")
			}
			for _, text := range []string{out.Err.Message, out.Err.Detail, fmt.Sprint(out.Err.Extra), fmt.Sprint(out.Steps), fmt.Sprint(out.Err.Result().Content)} {
				if strings.Contains(text, "hunter22") {
					t.Error(text)
				}
			}
			if !strings.Contains(out.Err.Message, redact.Mark) && !strings.Contains(out.Err.Message, "internal") {
				t.Error(out.Err.Message)
			}
			if n := out.Err.Extra["request"]; n != nil && !strings.Contains(fmt.Sprint(n), "12345678901234567890") {
				t.Errorf("a number was changed: %v", n)
			}
		})
	}
}

func TestAnErrorsExtraIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		extra any
		kept  bool
	}{
		"small":   {"x", true},
		"big":     {strings.Repeat("x", 64<<10), false},
		"no JSON": {make(chan int), false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKB()
			k.invoke = func(context.Context, *provider.Request) (*tool.Result, error) {
				return nil, tool.Errorf(tool.ToolFailed, "no").With("more", tt.extra)
			}
			out := newPipeline(t, nil).Call(t.Context(), k.request("search", `{}`))
			if _, kept := out.Err.Extra["more"]; kept != tt.kept || out.Err.Message != "no" {
				t.Errorf("%+v", out.Err)
			}
		})
	}
}

func TestWhatARunningCallTellsIsMasked(t *testing.T) {
	k := newKB()
	k.invoke = func(_ context.Context, req *provider.Request) (*tool.Result, error) {
		req.Host.Progress(tool.Progress{Note: "with " + key})
		data, err := json.Marshal(map[string]string{"key": key})
		req.Host.Log(tool.LogRecord{Level: "info", Logger: "hunter22", Data: data})
		req.Host.Log(tool.LogRecord{Data: json.RawMessage(`12345678`)})
		return tool.TextResult("ok"), err
	}
	var heard []string
	req := k.request("search", `{}`)
	req.Host = &provider.Host{
		OnProgress: func(p tool.Progress) { heard = append(heard, p.Note) },
		OnLog:      func(r tool.LogRecord) { heard = append(heard, r.Logger+" "+string(r.Data)) },
	}
	newPipeline(t, &pipeline.Options{Mask: redact.New(key, "hunter22", "12345678").Mask}).Call(t.Context(), req)
	if want := []string{"with ***", `*** {"key":"***"}`, ` "***"`}; !slices.Equal(heard, want) {
		t.Errorf("got %q", heard)
	}
}

func TestAnExplainedApprovalNamesWhoAnswered(t *testing.T) {
	k := newKB()
	s := &trace{decision: pipeline.Decision{Action: pipeline.Ask}, answer: func(*pipeline.Entry) pipeline.Answer {
		return pipeline.Answer{By: "ann, console"}
	}}
	req := k.request("search", `{}`)
	req.Explain = true
	out := newPipeline(t, &pipeline.Options{Rules: s, Approvals: s}).Call(t.Context(), req)
	i := slices.IndexFunc(out.Steps, func(s pipeline.Step) bool { return s.Stage == "approval" })
	if i < 0 || out.Steps[i].Note != "answered by ann, console" {
		t.Errorf("%+v", out.Steps)
	}
}
