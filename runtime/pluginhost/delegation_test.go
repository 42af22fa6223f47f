package pluginhost_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestADelegationLastsUntilItIsTakenBack(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Grant = []string{"call_tool"}
	h := start(t, o)
	h.ready()
	var gone atomic.Bool
	inCall := &provider.Host{
		OnCallTool: func(context.Context, tool.Name, json.RawMessage) (*tool.Result, error) {
			return tool.TextResult("in call"), nil
		},
		OnDelegate: func(issuer tool.Name) *provider.Delegate {
			return &provider.Delegate{
				Check: func() error {
					if gone.Load() {
						return tool.Errorf(tool.NotGranted, "the agent is gone")
					}
					return nil
				},
				CallTool: func(_ context.Context, name tool.Name, args json.RawMessage) (*tool.Result, error) {
					return tool.TextResult(fmt.Sprintf("%s%s for a call of %s", name, args, issuer)), nil
				},
			}
		},
	}
	delegate := func() string {
		req := h.request("delegate", `{}`)
		req.Host = inCall
		result, err := h.Invoke(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return result.Text()
	}
	outside := func(token, name string) string {
		return h.text("call-outside", fmt.Sprintf(`{"token":%q,"tool":%q}`, token, name))
	}
	expect := func(what, got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}

	expect("without a delegation", outside("", "other"), "error not_granted: a tool can be called outside a call only with a delegation")
	expect("with a made-up one", outside("guess", "other"), "error not_granted: there is no such delegation")
	token := delegate()
	if again := delegate(); again != token {
		t.Errorf("the same was delegated twice: %q, %q", token, again)
	}
	expect("with it", outside(token, "other"), "other{} for a call of delegate")
	expect("for another tool", outside(token, "third"), "error not_granted: the delegation is for other, not for third")
	list := h.Inspect().Delegations
	if len(list) != 1 || list[0].Agent != "agent-1" || list[0].Tool != "other" || list[0].IssuedBy != "delegate" || list[0].Calls != 1 || list[0].LastError != "" {
		t.Fatalf("listed: %+v", list)
	}
	if strings.Contains(fmt.Sprint(list), token) {
		t.Error("the list gives the secret away")
	}

	pid := h.Offer().Status.PID
	h.Restart()
	h.await("another process", func(o *provider.Offer) bool { return o.Status.State == provider.Ready && o.Status.PID != pid })
	expect("after a restart of the process", outside(token, "other"), "other{}")

	if n := h.Revoke("nothing-like-it"); n != 0 {
		t.Errorf("%d revoked", n)
	}
	if n := h.Revoke(list[0].ID); n != 1 {
		t.Errorf("%d revoked", n)
	}
	expect("after it was revoked", outside(token, "other"), "error not_granted: there is no such delegation")

	token = delegate()
	gone.Store(true)
	expect("when the agent is gone", outside(token, "other"), "error not_granted: the agent is gone")
	if list := h.Inspect().Delegations; len(list) != 0 {
		t.Errorf("still listed: %+v", list)
	}
	gone.Store(false)
	expect("when it came back", outside(token, "other"), "error not_granted: there is no such delegation")

	inCall.OnCallTool = func(context.Context, tool.Name, json.RawMessage) (*tool.Result, error) {
		return nil, errors.New("broken")
	}
	expect("a call that failed", delegate(), "error")
	if list := h.Inspect().Delegations; len(list) != 0 {
		t.Errorf("a failed call delegated: %+v", list)
	}
	inCall.OnDelegate = nil
	expect("a caller that delegates nothing", delegate(), "error unsupported")
}

func TestDelegationsAreBounded(t *testing.T) {
	var held pluginhost.DelegationsUnderTest
	for n := range held.Most() {
		if err := held.Issue(fmt.Sprint("agent-", n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := held.Issue("one-more"); tool.CodeOf(err) != tool.RateLimited {
		t.Errorf("error %v", err)
	}
	if err := held.Issue("agent-0"); err != nil {
		t.Errorf("one that is held already: %v", err)
	}
}
