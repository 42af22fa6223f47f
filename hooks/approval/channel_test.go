package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/hooks/approval"
	"github.com/hermesd/hermesd/runtime/tool"
)

// answering is a channel that answers everything after a time.
func answering(name string, after time.Duration, c approval.Choice) *channel {
	return &channel{name: name, ask: func(ctx context.Context, p *approval.Prompt) (approval.Reply, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(after):
		}
		reply := approval.Reply{}
		for _, r := range p.Requests {
			reply[r.ID] = approval.Decision{Choice: c}
		}
		return reply, nil
	}}
}

func failing(name string, err error) *channel {
	return &channel{name: name, ask: func(context.Context, *approval.Prompt) (approval.Reply, error) { return nil, err }}
}

func TestAllChannelsAreAskedAndTheFirstAnswerWins(t *testing.T) {
	panics := &channel{name: "panics", ask: func(context.Context, *approval.Prompt) (approval.Reply, error) { panic("oh") }}
	deaf := answering("deaf", 0, approval.Once)
	deaf.deaf = true
	nonsense := &channel{name: "nonsense", ask: func(_ context.Context, p *approval.Prompt) (approval.Reply, error) {
		return approval.Reply{p.Requests[0].ID: {Choice: "perhaps"}, "other": {Choice: approval.Once}}, nil
	}}
	quiet := answering("quiet", time.Hour, approval.Once)
	for name, tt := range map[string]struct {
		channels []approval.Channel
		client   approval.Channel
		code     tool.Code
		by       string
		after    time.Duration
	}{
		"the faster yes":                            {[]approval.Channel{answering("slow", 2e9, approval.Deny), answering("fast", 1e9, approval.Once)}, nil, "", "fast", 1e9},
		"the faster no":                             {[]approval.Channel{answering("slow", 2e9, approval.Once)}, answering("client", 1e9, approval.Deny), tool.ApprovalDenied, "client", 1e9},
		"a broken one leaves it to the others":      {[]approval.Channel{failing("a", errors.New("x")), panics, answering("b", 1e9, approval.Once)}, nil, "", "b", 1e9},
		"a closed question leaves it to the others": {[]approval.Channel{answering("b", 1e9, approval.Once)}, failing("client", approval.ErrDismissed), "", "b", 1e9},
		"nonsense is no answer":                     {[]approval.Channel{nonsense, answering("b", 1e9, approval.Once)}, nil, "", "b", 1e9},
		"only broken ones":                          {[]approval.Channel{failing("a", errors.New("x")), panics}, nil, tool.NobodyAsked, "", 0},
		"only nonsense":                             {[]approval.Channel{nonsense}, nil, tool.NobodyAsked, "", 0},
		"only deaf ones":                            {[]approval.Channel{deaf}, nil, tool.NobodyAsked, "", 0},
		"only a closed question":                    {nil, failing("client", approval.ErrDismissed), tool.ApprovalTimeout, "", 0},
		"only a quiet one":                          {[]approval.Channel{quiet}, nil, tool.ApprovalPending, "", 50e9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t, func(o *approval.Options) { o.Channels = tt.channels })
				began := time.Now()
				a := ask(request())
				a.Client = tt.client
				got := b.Ask(t.Context(), a)[0]
				if code(got.Err) != tt.code || got.By != tt.by || time.Since(began) != tt.after {
					t.Errorf("%q %v by %q after %s", code(got.Err), got.Err, got.By, time.Since(began))
				}
			})
		})
	}
}

func TestAChannelIsToldWhenAnotherOneWasFaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended time.Time
		b := newBroker(t, func(o *approval.Options) {
			o.Channels = []approval.Channel{answering("fast", time.Second, approval.Once), &channel{name: "slow",
				ask: func(ctx context.Context, _ *approval.Prompt) (approval.Reply, error) {
					<-ctx.Done()
					ended = time.Now()
					return nil, ctx.Err()
				}}}
		})
		began := time.Now()
		b.Ask(t.Context(), ask(request()))
		synctest.Wait()
		if ended.Sub(began) != time.Second {
			t.Errorf("the slow channel ended after %s", ended.Sub(began))
		}
	})
}

func TestAClientIsAskedOnceAndCanStillAnswerWhenItsCallHasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		client := &channel{name: "client", ask: func(ctx context.Context, p *approval.Prompt) (approval.Reply, error) {
			asked.Add(1)
			return answering("client", 2*time.Minute, approval.Once).ask(ctx, p)
		}}
		b := newBroker(t)
		for i, want := range []tool.Code{tool.ApprovalPending, tool.ApprovalPending, ""} {
			r := request(call(string(rune('a' + i))))
			a := ask(r)
			a.Client = client
			got := b.Ask(t.Context(), a)[0]
			if code(got.Err) != want {
				t.Fatalf("call %d: %v", i, got.Err)
			}
			if want == "" {
				if err := b.Redeem(got.ID, r); err != nil {
					t.Error(err)
				}
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("the human saw %d questions", n)
		}
	})
}

func TestTheFormThatClientsShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var message string
		var schema map[string]any
		client := approval.NewForm(func(_ context.Context, m string, s json.RawMessage) (string, json.RawMessage, error) {
			message = m
			if err := json.Unmarshal(s, &schema); err != nil {
				t.Error(err)
			}
			return "accept", json.RawMessage(`{"choice_1":"once","choice_2":"deny","reason":"not this disk"}`), nil
		})
		b := newBroker(t)
		a := ask(request(arguments("{\"disk\":\"sda\u202e\"}")), request(call("2"), arguments(`{"text":"`+strings.Repeat("x", 3000)+`"}`)))
		a.Client = client
		got := b.Ask(t.Context(), a)
		if got[0].Err != nil || code(got[1].Err) != tool.ApprovalDenied || !strings.Contains(got[1].Err.Error(), "not this disk") {
			t.Errorf("%v, %v", got[0].Err, got[1].Err)
		}
		for _, want := range []string{"2 calls wait", "1. wipe (plugin disk), for agent ann, may be destructive", `"disk": "sda\u{202e}"`, "Asked by: destructive (policy.hcl:3)",
			"Because: it destroys", `"always" covers: disk="sda\u{202e}"`, "more characters)"} {
			if !strings.Contains(message, want) {
				t.Errorf("the question lacks %q:\n%s", want, message)
			}
		}
		if diff := cmp.Diff([]any{"choice_1", "choice_2"}, schema["required"]); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatAHumanDoesWithAForm(t *testing.T) {
	requests := []approval.Pending{{ID: "a"}}
	for name, tt := range map[string]struct {
		action, content string
		want            approval.Reply
		err             bool
	}{
		"chooses":                {"accept", `{"choice":"once"}`, approval.Reply{"a": {Choice: approval.Once}}, false},
		"declines":               {"decline", ``, approval.Reply{"a": {Choice: approval.Deny}}, false},
		"closes it":              {"cancel", ``, nil, true},
		"leaves it empty":        {"accept", `{}`, nil, true},
		"sends no object":        {"accept", `[`, nil, true},
		"sends nothing":          {"accept", ``, nil, true},
		"does something unknown": {"maybe", `{"choice":"once"}`, nil, true},
		"chooses a number":       {"accept", `{"choice":1}`, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := approval.ParseForm(requests, tt.action, json.RawMessage(tt.content))
			if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.err {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestAWatcherThatIsTooSlowIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, func(o *approval.Options) { o.Wait = -1 })
		events, stop := b.Watch()
		defer stop()
		for i := range 300 {
			b.Ask(t.Context(), ask(request(func(r *approval.Request) { r.Agent = string(rune('a' + i)) })))
		}
		n := 0
		for range events {
			n++
		}
		if n != 256 {
			t.Errorf("it saw %d events", n)
		}
	})
}
