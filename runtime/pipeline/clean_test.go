package pipeline_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestWhatAThirdPartyReturnsIsCleaned(t *testing.T) {
	content := func(s string) *tool.Result { return &tool.Result{Content: []tool.Content{tool.Content(s)}} }
	meta := func(s string) *tool.Result { return &tool.Result{Meta: json.RawMessage(s)} }
	for name, tt := range map[string]struct{ in, want *tool.Result }{
		"invisible tag characters": {
			content("{\"type\":\"text\",\"text\":\"a\U000E0041\U000E007Fb\U0001F3F4\"}"), content("{\"type\":\"text\",\"text\":\"ab\U0001F3F4\"}")},
		"tag characters written as escapes": {
			content(`{"type":"text","text":"a\udb40\udc41\uDB40\uDC7fb"}`), content(`{"type":"text","text":"ab"}`)},
		"a tag character between the halves of another": {
			content(`{"text":"\udb40\udb40\udc41\udc42"}`), content(`{"text":""}`)},
		"what only looks like an escape stays": {
			content(`{"type":"text","text":"a\\udb40\\udc41 \ud83c\udff4 \udb40\udd00"}`), content(`{"type":"text","text":"a\\udb40\\udc41 \ud83c\udff4 \udb40\udd00"}`)},
		"tag characters in structured content": {
			&tool.Result{Structured: json.RawMessage("{\"a\U000E0041\" : 1.0}")}, &tool.Result{Structured: json.RawMessage(`{"a" : 1.0}`)}},
		"reserved keys of a result's _meta": {
			meta(`{"io.modelcontextprotocol/x":1, "a" : 1.0,"mcp/y":2,"com.mcp.tools/z":3,"tools.mcp.com/w":4,"hermesd/session":"s","example.com/mcp":5}`),
			meta(`{"a":1.0,"example.com/mcp":5}`)},
		"a reserved key written with escapes": {meta(`{"\u006dcp/y":1}`), meta(`{}`)},
		"reserved keys of a block and of the resource in it": {
			content(`{"type":"resource","_meta":{"mcp/a":1,"b":2},"resource":{"uri":"x","_meta":{"mcp.dev/c":{"d":1}}}}`),
			content(`{"type":"resource","_meta":{"b":2},"resource":{"uri":"x","_meta":{}}}`)},
		"text that speaks of _meta stays": {
			content(`{"type":"text", "text":"{\"_meta\":{\"mcp/a\":1}}" }`), content(`{"type":"text", "text":"{\"_meta\":{\"mcp/a\":1}}" }`)},
		"nothing to remove, nothing changed": {
			&tool.Result{Content: []tool.Content{tool.Content("{ \"type\":\"text\",\n\"text\":\"x\", \"_meta\":{ \"a\":1 } }")}, Structured: json.RawMessage(` {"b":1e2} `), Meta: json.RawMessage(`{ "c" : 1 }`), IsError: true},
			&tool.Result{Content: []tool.Content{tool.Content("{ \"type\":\"text\",\n\"text\":\"x\", \"_meta\":{ \"a\":1 } }")}, Structured: json.RawMessage(` {"b":1e2} `), Meta: json.RawMessage(`{ "c" : 1 }`), IsError: true}},
	} {
		t.Run(name, func(t *testing.T) {
			for source, want := range map[tool.Source]*tool.Result{tool.SourceMCP: tt.want, tool.SourcePlugin: tt.want, tool.SourceBuiltin: tt.in} {
				k := newKB()
				k.tools["search"].Source = source
				k.invoke = func(context.Context, *provider.Request) (*tool.Result, error) { return tt.in, nil }
				out := newPipeline(t, nil).Call(t.Context(), k.request("search", ``))
				if out.Err != nil {
					t.Fatal(out.Err)
				}
				if diff := cmp.Diff(text(want), text(out.Result)); diff != "" {
					t.Errorf("%s: %s", source, diff)
				}
			}
		})
	}
}

// text shows every byte of a result.
func text(r *tool.Result) []string {
	list := []string{string(r.Structured), string(r.Meta)}
	for _, c := range r.Content {
		list = append(list, string(c))
	}
	return list
}

func TestWhatAThirdPartySaysBesidesItsResultIsCleaned(t *testing.T) {
	const tagged, escaped = "a\U000E0041b", `"a\udb40\udc41b"`
	for source, want := range map[tool.Source]string{tool.SourceMCP: "ab", tool.SourceBuiltin: tagged} {
		k := newKB()
		k.tools["search"].Source = source
		k.invoke = func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
			h := req.Host
			h.Progress(tool.Progress{Note: tagged})
			h.Log(tool.LogRecord{Logger: tagged, Data: json.RawMessage(escaped)})
			for _, ask := range []func() error{
				func() error {
					_, err := h.OnAsk(ctx, provider.Question{Message: tagged, Schema: json.RawMessage(escaped)})
					return err
				},
				func() error { _, err := h.OnSample(ctx, json.RawMessage(escaped)); return err },
				func() error {
					_, err := h.OnInputs(ctx, map[string]provider.Input{"k": {Method: "m", Params: json.RawMessage(escaped)}})
					return err
				},
			} {
				if err := ask(); err != nil {
					return nil, err
				}
			}
			return nil, tool.Errorf(tool.ToolFailed, tagged).With("more", json.RawMessage(escaped)).With("n", json.Number("12345678901234567890"))
		}
		var said []string
		say := func(raw json.RawMessage) {
			var text string
			if err := json.Unmarshal(raw, &text); err != nil {
				t.Error(err)
			}
			said = append(said, text)
		}
		req := k.request("search", ``)
		req.Host = &provider.Host{
			OnProgress: func(p tool.Progress) { said = append(said, p.Note) },
			OnLog:      func(r tool.LogRecord) { said = append(said, r.Logger); say(r.Data) },
			OnAsk: func(_ context.Context, q provider.Question) (provider.Answer, error) {
				said = append(said, q.Message)
				say(q.Schema)
				return provider.Answer{}, nil
			},
			OnSample: func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
				say(params)
				return nil, nil
			},
			OnInputs: func(_ context.Context, requests map[string]provider.Input) (map[string]json.RawMessage, error) {
				say(requests["k"].Params)
				return nil, nil
			},
		}
		out := newPipeline(t, nil).Call(t.Context(), req)
		if out.Err == nil {
			t.Fatal("no error")
		}
		var read struct {
			Error, More string
			N           json.Number
		}
		if err := json.Unmarshal([]byte(out.Err.Result().Text()), &read); err != nil {
			t.Fatal(err)
		}
		said = append(said, read.Error, read.More)
		if read.N != "12345678901234567890" || len(said) != 9 {
			t.Errorf("%s: %+v, %q", source, read, said)
		}
		for _, text := range said {
			if text != want {
				t.Errorf("%s: %q", source, text)
			}
		}
	}
}

func TestAThirdPartysQuestionsHaveNoReservedMeta(t *testing.T) {
	const sent, want = `{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"},"own":1},"message":"m"}`, `{"_meta":{"own":1},"message":"m"}`
	k := newKB()
	k.invoke = func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
		if _, err := req.Host.OnSample(ctx, json.RawMessage(sent)); err != nil {
			return nil, err
		}
		_, err := req.Host.OnInputs(ctx, map[string]provider.Input{"k": {Params: json.RawMessage(sent)}, "none": {}})
		return tool.TextResult("asked"), err
	}
	var asked []string
	req := k.request("search", ``)
	req.Host = &provider.Host{
		OnSample: func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
			asked = append(asked, string(params))
			return nil, nil
		},
		OnInputs: func(_ context.Context, requests map[string]provider.Input) (map[string]json.RawMessage, error) {
			asked = append(asked, string(requests["k"].Params), string(requests["none"].Params))
			return nil, nil
		},
	}
	if out := newPipeline(t, nil).Call(t.Context(), req); out.Err != nil {
		t.Fatal(out.Err)
	}
	if diff := cmp.Diff([]string{want, want, ""}, asked); diff != "" {
		t.Error(diff)
	}
}
