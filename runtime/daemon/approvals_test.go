package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/hooks/approval"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// yes is a human who approves everything once.
type yes struct{}

func (yes) Name() string    { return "yes" }
func (yes) Listening() bool { return true }
func (yes) Ask(_ context.Context, p *approval.Prompt) (approval.Reply, error) {
	reply := approval.Reply{}
	for i := range p.Requests {
		reply[p.Requests[i].ID] = approval.Decision{Choice: approval.Once}
	}
	return reply, nil
}

// askAll is a policy that asks about every call.
type askAll struct{ version string }

func (a askAll) Decide(context.Context, *pipeline.Entry) pipeline.Decision {
	return pipeline.Decision{Action: pipeline.Ask, Rule: "all (x.hcl:1)", Key: "all", Policy: a.version}
}

// tampering changes a call between its approval and its run.
type tampering struct {
	approvals
	change func(*pipeline.Entry, *approvals)
}

func (t *tampering) Ask(ctx context.Context, entries []*pipeline.Entry) []pipeline.Answer {
	answers := t.approvals.Ask(ctx, entries)
	for i, e := range entries {
		e.Answer = answers[i]
		t.change(e, &t.approvals)
	}
	return answers
}

type oneTool struct{ provider.Binding }

func (o oneTool) Resolve(tool.Name) (*provider.Binding, error) { return &o.Binding, nil }

func TestAnApprovalIsForExactlyOneCall(t *testing.T) {
	cases := map[string]struct {
		change func(*pipeline.Entry, *approvals)
		want   tool.Code
	}{
		"nothing changes": {func(*pipeline.Entry, *approvals) {}, ""},
		"one byte of the arguments": {func(e *pipeline.Entry, _ *approvals) {
			e.Call.Arguments = bytes.Replace(e.Call.Arguments, []byte("a"), []byte("b"), 1)
		}, tool.ApprovalVoid},
		"a blank in the arguments": {func(e *pipeline.Entry, _ *approvals) {
			e.Call.Arguments = append(json.RawMessage(" "), e.Call.Arguments...)
		}, tool.ApprovalVoid},
		"the agent":   {func(e *pipeline.Entry, _ *approvals) { e.Call.Agent = "other" }, tool.ApprovalVoid},
		"the session": {func(e *pipeline.Entry, _ *approvals) { e.Call.Session = "desk/other" }, tool.ApprovalVoid},
		"the call":    {func(e *pipeline.Entry, _ *approvals) { e.Call.ID = "another" }, tool.ApprovalVoid},
		"the tool": {func(e *pipeline.Entry, _ *approvals) {
			d := *e.Definition
			d.Name = "kb_drop"
			e.Definition = &d
		}, tool.ApprovalVoid},
		"the tool's provider": {func(e *pipeline.Entry, _ *approvals) {
			d := *e.Definition
			d.SourceName = "other"
			e.Definition = &d
		}, tool.ApprovalVoid},
		"the policy of the decision": {func(e *pipeline.Entry, _ *approvals) { e.Decision.Policy = "v2" }, tool.ApprovalVoid},
		"the policy in force": {func(_ *pipeline.Entry, a *approvals) {
			if err := a.Apply(&approval.Settings{Policy: "v2"}); err != nil {
				panic(err)
			}
		}, tool.ApprovalVoid},
		"the clock past the expiry": {func(*pipeline.Entry, *approvals) { time.Sleep(approval.DefaultTimeout) }, tool.ApprovalVoid},
		"it was used already": {func(e *pipeline.Entry, a *approvals) {
			if err := a.Redeem(context.Background(), e); err != nil {
				panic(err)
			}
		}, tool.ApprovalVoid},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				broker, err := approval.New(t.Context(), &approval.Options{Settings: approval.Settings{Policy: "v1", Channels: []approval.Channel{yes{}}}})
				if err != nil {
					t.Fatal(err)
				}
				defer broker.Close()
				runs := 0
				kb := providertest.New("kb", providertest.Tool{
					Definition: tool.Definition{Name: "kb_write"},
					Handler: func(context.Context, *provider.Request) (*tool.Result, error) {
						runs++
						return tool.TextResult("done"), nil
					},
				})
				p, err := pipeline.New(&pipeline.Options{Rules: askAll{"v1"}, Approvals: &tampering{approvals{Broker: broker}, c.change}})
				if err != nil {
					t.Fatal(err)
				}
				view := oneTool{provider.Binding{Definition: &kb.Offer().Tools[0], Provider: kb}}
				out := p.Call(t.Context(), &pipeline.Request{View: view, Call: &tool.Call{
					Agent: "desk", Session: "desk/1", Attended: true, Tool: "kb_write", Arguments: json.RawMessage(`{"text":"a"}`),
				}})
				code := tool.Code("")
				if out.Err != nil {
					code = out.Err.Code
				}
				if code != c.want || (runs == 1) != (c.want == "") {
					t.Errorf("it ended with %q (%v) and ran %d times", code, out.Err, runs)
				}
			})
		})
	}
}

func TestAQuestionNamesAllWhoAsk(t *testing.T) {
	e := &pipeline.Entry{
		Call: &tool.Call{ID: "1", Agent: "desk"}, Definition: &tool.Definition{Name: "terminal"},
		Verdict:  pipeline.Verdict{Action: pipeline.Ask, Hook: "guard", Message: "looks odd", RuleKey: "odd"},
		Decision: pipeline.Decision{Action: pipeline.Ask, Rule: "destructive (a.hcl:3)", Key: "destructive", Grants: []string{"once"}, Reason: "cannot be undone"},
	}
	r := requestOf(e)
	if r.Rule != "hook guard and rule destructive (a.hcl:3)" || r.Key != `hook guard "odd" and destructive` || r.Reason != "looks odd; cannot be undone" || len(r.Choices) != 1 {
		t.Errorf("%+v", r)
	}
	e.Verdict.RuleKey = ""
	if r := requestOf(e); r.Key != "" {
		t.Errorf("a hook that names no reason offers grants for %q", r.Key)
	}
}
