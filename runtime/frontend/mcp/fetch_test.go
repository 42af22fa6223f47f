package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// operator is everything that a pipeline asks about a call, as far as a test wants it.
type operator struct {
	deny, ask string // parts of URIs and names
	rewrite   json.RawMessage
	replace   *tool.Result

	mu      sync.Mutex
	seen    []string // what the rules were asked
	records []string
}

func (o *operator) options() *pipeline.Options {
	return &pipeline.Options{Rules: o, Audit: o, Hooks: o, Approvals: o, Results: o}
}

func (o *operator) Decide(_ context.Context, e *pipeline.Entry) pipeline.Decision {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := e.Definition
	o.seen = append(o.seen, fmt.Sprintf("%s of %s:%s, read-only %t: %s", d.Name, d.Source, d.SourceName, d.Annotations.IsReadOnly(), e.Call.Arguments))
	switch args := string(e.Call.Arguments); {
	case o.deny != "" && strings.Contains(args, o.deny):
		return pipeline.Decision{Action: pipeline.Deny, Rule: "no secrets", Reason: "not here"}
	case o.ask != "" && strings.Contains(args, o.ask):
		return pipeline.Decision{Action: pipeline.Ask, Rule: "ask first"}
	}
	return pipeline.Decision{}
}

func (o *operator) Started(_ context.Context, r *tool.Record) error { o.note(r); return nil }
func (o *operator) Finished(r *tool.Record)                         { o.note(r) }

func (o *operator) note(r *tool.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.records = append(o.records, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", r.Agent, r.Kind, r.Tool, r.Arguments, r.Outcome)))
}

func (o *operator) Before(context.Context, *pipeline.Entry) (pipeline.Verdict, *tool.Error) {
	return pipeline.Verdict{Arguments: o.rewrite}, nil
}

func (o *operator) After(_ context.Context, _ *pipeline.Entry, out *pipeline.Outcome) {
	if o.replace != nil {
		out.Result = o.replace
	}
}

// Ask puts the question to the client, in the way that the client has.
func (o *operator) Ask(ctx context.Context, entries []*pipeline.Entry) []pipeline.Answer {
	r := entries[0].Request
	switch {
	case r.Suspendable && r.Resume == "":
		return []pipeline.Answer{{Suspend: json.RawMessage(`{"state":"broker.seal","message":"may it?","schema":{"type":"object","properties":{}}}`)}}
	case r.Suspendable:
		if strings.Contains(r.Resume, `"broker.seal"`) && strings.Contains(r.Resume, `"accept"`) {
			return []pipeline.Answer{{ID: "1"}}
		}
	default:
		a, err := r.Host.Ask(ctx, provider.Question{Message: "may it?"})
		if err == nil && a.Action == "accept" {
			return []pipeline.Answer{{ID: "1"}}
		}
	}
	return []pipeline.Answer{{Err: tool.Errorf(tool.ApprovalDenied, "a human said no")}}
}

func (o *operator) Redeem(context.Context, *pipeline.Entry) *tool.Error { return nil }

// Fit would break what must come in one piece.
func (o *operator) Fit(_ context.Context, _ *pipeline.Entry, _ *tool.Result) (*tool.Result, *tool.Error) {
	return tool.TextResult("a preview"), nil
}

func (o *operator) take() (seen, records []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen, records = o.seen, o.records
	o.seen, o.records = nil, nil
	return seen, records
}

// supervised is an endpoint whose pipeline asks o.
func supervised(t *testing.T, o *operator, providers ...provider.Provider) *endpoint {
	t.Helper()
	return serveWorld(t, &mcp.Options{}, frontendtest.NewBehind(t, o.options(), providers...))
}

// errands are all ways to reach a library. A new one joins by one line.
var errands = map[string]struct {
	do           func(context.Context, *sdk.ClientSession) error
	tool, params string
}{
	"a resource": {func(ctx context.Context, s *sdk.ClientSession) error {
		_, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: "mcp://a/file:///x"})
		return err
	}, "mcp__a__resources/read", `{"uri":"file:///x"}`},
	"a prompt": {func(ctx context.Context, s *sdk.ClientSession) error {
		_, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: "mcp__a__greet", Arguments: map[string]string{"who": "file:///x"}})
		return err
	}, "mcp__a__prompts/get", `{"arguments":{"who":"file:///x"},"name":"greet"}`},
	"a completion": {func(ctx context.Context, s *sdk.ClientSession) error {
		_, err := s.Complete(ctx, &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "mcp__a__greet"}, Argument: sdk.CompleteParamsArgument{Name: "who", Value: "file:///x"}})
		return err
	}, "mcp__a__completion/complete", `{"argument":{"name":"who","value":"file:///x"},"ref":{"type":"ref/prompt","name":"greet"}}`},
	"a subscription": {func(ctx context.Context, s *sdk.ClientSession) error {
		return s.Subscribe(ctx, &sdk.SubscribeParams{URI: "mcp://a/file:///x"})
	}, "mcp__a__resources/subscribe", `{"uri":"file:///x"}`},
}

func TestEveryRequestOfALibraryIsDecidedAndOnRecord(t *testing.T) {
	for name, errand := range errands {
		for generation, version := range generations {
			t.Run(name+", "+generation, func(t *testing.T) {
				o := &operator{}
				a := newLibrary("a", "mcp://a/", "file:///x")
				e := supervised(t, o, a)
				told := version != newer || name != "a subscription" // the SDK's client does not report how that ended
				if err := errand.do(t.Context(), e.connect(t, version, nil)); err != nil {
					t.Fatal(err)
				}
				seen, records := o.take()
				if diff := cmp.Diff([]string{fmt.Sprintf("%s of mcp:a, read-only true: %s", errand.tool, errand.params)}, seen); diff != "" {
					t.Errorf("the rules saw: %s", diff)
				}
				if diff := cmp.Diff([]string{
					"desk started " + errand.tool + " " + errand.params,
					"desk finished " + errand.tool + " " + errand.params + " ok",
				}, records); diff != "" {
					t.Errorf("on record: %s", diff)
				}
				a.asked()

				o.deny = "file:///x"
				err := errand.do(t.Context(), e.connect(t, version, nil))
				var refused *jsonrpc.Error
				if told && (!errors.As(err, &refused) || !strings.Contains(refused.Message, "no secrets") || !strings.Contains(string(refused.Data), `"code":"denied_by_rule"`)) {
					t.Errorf("a denied request: %v", err)
				}
				if got := a.asked(); len(got) != 0 {
					t.Errorf("the server was asked: %q", got)
				}
				if _, records = o.take(); len(records) != 1 || records[0] != "desk finished "+errand.tool+" "+errand.params+" denied" {
					t.Errorf("on record: %q", records)
				}

				e.Agents.Restrict(t, "desk", []string{"mcp:b"}, nil)
				if err := errand.do(t.Context(), e.connect(t, version, nil)); told && err == nil {
					t.Error("an agent without the toolset is served")
				}
				if seen, records = o.take(); len(a.asked()) != 0 || len(seen) != 0 || len(records) != 1 || !strings.Contains(records[0], "desk finished ") || !strings.HasSuffix(records[0], " error") {
					t.Errorf("decided %q, on record %q", seen, records)
				}
			})
		}
	}
}

func TestARequestOfALibraryThatNeedsAHuman(t *testing.T) {
	for name, errand := range errands {
		if name != "a resource" && name != "a prompt" {
			continue // nothing else can be brought back with an answer
		}
		for generation, version := range generations {
			for _, says := range []string{"accept", "decline"} {
				t.Run(name+", "+generation+", "+says, func(t *testing.T) {
					o := &operator{ask: "file:///x"}
					a := newLibrary("a", "mcp://a/", "file:///x")
					questions := 0
					s := supervised(t, o, a).connect(t, version, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
						questions++
						return &sdk.ElicitResult{Action: says}, nil
					}})
					err := errand.do(t.Context(), s)
					if ran := len(a.asked()); questions != 1 || (err == nil) != (says == "accept") || (ran == 1) != (says == "accept") {
						t.Errorf("asked %d times, ran %d times: %v", questions, ran, err)
					}
				})
			}
		}
	}
}

// MCP 2026-07-28: a result that asks is of its own kind, and has nothing of the result that it stands for.
func TestAQuestionHasNoContent(t *testing.T) {
	const uri = "mcp://a/file:///x"
	e := supervised(t, &operator{ask: "file:///x"}, newLibrary("a", "mcp://a/", "file:///x"))
	body := `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newer + `","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}},"uri":"` + uri + `"}}`
	messages := readMessages(t, e.post(t, body, map[string]string{"Mcp-Protocol-Version": newer, "Mcp-Method": "resources/read", "Mcp-Name": uri}))
	var m struct{ Result map[string]json.RawMessage }
	if err := json.Unmarshal(messages[len(messages)-1], &m); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(m.Result)); !slices.Equal(got, []string{"_meta", "inputRequests", "requestState", "resultType"}) || string(m.Result["resultType"]) != `"input_required"` {
		t.Errorf("got %s", messages)
	}
}

func TestWhatHooksDoToARequestOfALibrary(t *testing.T) {
	read := errands["a resource"].do
	t.Run("they may change what is asked for", func(t *testing.T) {
		a := newLibrary("a", "mcp://a/", "file:///x")
		s := supervised(t, &operator{rewrite: json.RawMessage(`{"uri":"file:///public"}`)}, a).connect(t, older, nil)
		if err := read(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{`resources/read file:///public mcp://a/ {"uri":"file:///public"}`}, a.asked()); diff != "" {
			t.Error(diff)
		}
	})
	for name, result := range map[string]*tool.Result{
		"by text":     tool.TextResult("redacted"),
		"by an error": {Structured: json.RawMessage(`{}`), IsError: true},
		"by no JSON":  {Structured: json.RawMessage(`[]`)},
	} {
		t.Run("an answer that they replaced "+name+" is none", func(t *testing.T) {
			s := supervised(t, &operator{replace: result}, newLibrary("a", "mcp://a/", "file:///x")).connect(t, older, nil)
			if err := read(t.Context(), s); err == nil || !strings.Contains(err.Error(), "no answer to that method") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("an answer that they replaced by another reaches the client", func(t *testing.T) {
		o := &operator{replace: &tool.Result{Structured: json.RawMessage(`{"contents":[{"uri":"mcp://a/file:///x","text":"redacted"}]}`)}}
		s := supervised(t, o, newLibrary("a", "mcp://a/", "file:///x")).connect(t, older, nil)
		r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "mcp://a/file:///x"})
		if err != nil || len(r.Contents) != 1 || r.Contents[0].Text != "redacted" {
			t.Errorf("%+v %v", r, err)
		}
	})
}

// The answers of a library are its server's bytes, however long they are.
func TestAnAnswerOfALibraryStaysWhole(t *testing.T) {
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			contents := `[{"uri":"mcp://a/file:///x","text":"` + strings.Repeat("z", 300_000) + `","x-own":{"b":1,"a":12345678901234567890}}]`
			a := newLibrary("a", "mcp://a/", "file:///x")
			a.answer = json.RawMessage(`{"contents":` + contents + `,"_meta":{"k":"v"}}`)
			got := raw(t, supervised(t, &operator{}, a), version, "resources/read", "mcp://a/file:///x", `"uri":"mcp://a/file:///x"`)
			var result struct {
				Contents json.RawMessage
				Meta     struct{ K string } `json:"_meta"`
			}
			if err := json.Unmarshal(got, &result); err != nil {
				t.Fatal(err)
			}
			if string(result.Contents) != contents || result.Meta.K != "v" {
				t.Errorf("got %d bytes, want %d", len(result.Contents), len(contents))
			}
		})
	}
}

func TestAResourceThatNobodyHasIsNotFoundAndOnRecord(t *testing.T) {
	o := &operator{}
	s := supervised(t, o, newLibrary("a", "mcp://a/", "file:///x"), newLibrary("b", "mcp://b/")).connect(t, older, nil)
	_, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "mcp://c/file:///y"})
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) || refused.Code != sdk.CodeResourceNotFound {
		t.Errorf("got %v", err)
	}
	if _, records := o.take(); len(records) != 1 || records[0] != `desk finished resources/read {"uri":"mcp://c/file:///y"} error` {
		t.Errorf("on record: %q", records)
	}
}

func TestARequestWhoseServerDiesMidwayIsOnRecordAsUnknown(t *testing.T) {
	for want, broken := range map[tool.Outcome]error{
		tool.OutcomeLost:    tool.Errorf(tool.OutcomeUnknown, "the connection broke"),
		tool.OutcomeError:   tool.Errorf(tool.ProviderDown, "it does not start"),
		tool.OutcomeTimeout: tool.Errorf(tool.Timeout, "too late"),
	} {
		t.Run(string(want), func(t *testing.T) {
			o := &operator{}
			a := newLibrary("a", "mcp://a/", "file:///x")
			a.broken = broken
			s := supervised(t, o, a).connect(t, older, nil)
			if err := errands["a resource"].do(t.Context(), s); err == nil || !strings.Contains(err.Error(), broken.Error()) {
				t.Errorf("got %v", err)
			}
			if _, records := o.take(); len(records) != 2 || !strings.HasSuffix(records[1], " "+string(want)) {
				t.Errorf("on record: %q", records)
			}
		})
	}
}
