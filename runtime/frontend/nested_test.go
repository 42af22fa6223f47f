package frontend_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// calling is a tool that calls another with its own arguments, and answers with what that answered.
func calling(name, other tool.Name) providertest.Tool {
	return providertest.Tool{
		Definition: tool.Definition{Name: name, Description: "Calls another tool."},
		Handler: func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
			return req.Host.CallTool(ctx, other, req.Call.Arguments)
		},
	}
}

func TestAPluginsCallRunsAsItsCaller(t *testing.T) {
	fake := providertest.New("nest", calling("outer", "inner"), providertest.Echo("inner"))
	w := frontendtest.New(t, fake)
	progress := 0
	result := w.Desk.Dispatch(t.Context(), &frontend.Call{
		Agent: w.Agent("desk"), Session: "desk/1", Name: "outer", Arguments: json.RawMessage(`{"a":1}`), TraceParent: "00-1-2-01",
		Host: &provider.Host{OnProgress: func(tool.Progress) { progress++ }},
	})
	if result.IsError || result.Text() != `{"a":1}` {
		t.Fatalf("got %s", result.Text())
	}
	type view struct {
		Tool, Agent, Session, Trace string
		Via                         tool.Via
		Depth                       int
	}
	var got []view
	for _, req := range fake.Calls() {
		c := req.Call
		got = append(got, view{c.Tool, c.Agent, c.Session, c.TraceParent, c.Via, c.Depth})
		if req.Host.Progress(tool.Progress{}); c.Depth > 0 && progress != 1 {
			t.Error("the inner call's progress reached the caller of the outer one")
		}
	}
	want := []view{
		{"outer", "desk", "desk/1", "00-1-2-01", tool.ViaDirect, 0},
		{"inner", "desk", "desk/1", "00-1-2-01", tool.ViaPlugin, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestPluginsCallEachOtherFourLevelsDeep(t *testing.T) {
	fake := providertest.New("nest", calling("again", "again"))
	w := frontendtest.New(t, fake)
	result := w.Desk.Dispatch(t.Context(), &frontend.Call{Agent: w.Agent("desk"), Session: "desk/1", Name: "again"})
	if !result.IsError || !strings.Contains(result.Text(), "4 levels deep") {
		t.Errorf("got %s", result.Text())
	}
	if n := len(fake.Calls()); n != 5 {
		t.Errorf("%d calls ran, want the agent's own and 4 within", n)
	}
}

func TestADelegateActsForTheAgentAsItIsNow(t *testing.T) {
	var made *provider.Delegate
	fake := providertest.New("nest", providertest.Echo("inner"), providertest.Tool{
		Definition: tool.Definition{Name: "outer", Description: "Delegates."},
		Handler: func(_ context.Context, req *provider.Request) (_ *tool.Result, err error) {
			made, err = req.Host.Delegate("outer")
			return tool.TextResult("made"), err
		},
	})
	w := frontendtest.New(t, fake)
	asked := &provider.Host{OnAsk: func(context.Context, provider.Question) (provider.Answer, error) {
		return provider.Answer{Action: "accept"}, nil
	}}
	if r := w.Desk.Dispatch(t.Context(), &frontend.Call{Agent: w.Agent("desk"), Session: "desk/1", Name: "outer", Host: asked}); r.IsError {
		t.Fatal(r.Text())
	}
	result, err := made.CallTool(t.Context(), "inner", json.RawMessage(`{"b":2}`))
	if err != nil || result.Text() != `{"b":2}` {
		t.Fatalf("%v, %v", result, err)
	}
	calls := fake.Calls()
	last := calls[len(calls)-1]
	if c := last.Call; c.Agent != "desk" || c.Session != "desk/1" || c.Depth != 1 || c.Via != tool.ViaPlugin || c.Attended {
		t.Errorf("%+v", c)
	}
	if _, err := last.Host.Ask(t.Context(), provider.Question{}); tool.CodeOf(err) != tool.Unsupported {
		t.Errorf("a human was asked in a conversation that is over: %v", err)
	}

	fake.SetTools(providertest.Echo("inner"))
	w.Catalog.Refresh()
	if err := made.Check(); tool.CodeOf(err) != tool.NotGranted || !strings.Contains(err.Error(), "may no longer use outer") {
		t.Errorf("the tool is gone: %v", err)
	}
	w.Agents.Remove("desk")
	if _, err := made.CallTool(t.Context(), "inner", json.RawMessage(`{}`)); tool.CodeOf(err) != tool.NotGranted || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("the agent is gone: %v", err)
	}
}
