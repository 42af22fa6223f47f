package approval_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/hooks/approval"
	"github.com/hermesd/hermesd/runtime/tool"
)

var wipe = &tool.Definition{Name: "wipe", Source: tool.SourcePlugin, SourceName: "disk", Title: "Wipe"}

// request is a call that the tests ask about; change alters it.
func request(change ...func(*approval.Request)) *approval.Request {
	r := &approval.Request{
		CallID: "call-1", Agent: "ann", Session: "s1", Attended: true, Definition: wipe, Arguments: json.RawMessage(`{"disk":"sda"}`),
		Rule: "destructive (policy.hcl:3)", Reason: "it destroys", Key: "destructive", Policy: "v1",
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func call(id string) func(*approval.Request) { return func(r *approval.Request) { r.CallID = id } }

func arguments(raw string) func(*approval.Request) {
	return func(r *approval.Request) { r.Arguments = json.RawMessage(raw) }
}

func newBroker(t *testing.T, change ...func(*approval.Options)) *approval.Broker {
	t.Helper()
	o := &approval.Options{Settings: approval.Settings{Policy: "v1"}, Key: approval.Key{1, 2, 3}}
	for _, c := range change {
		c(o)
	}
	b, err := approval.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// watch makes the broker's list a channel that listens.
func watch(b *approval.Broker) (stop func()) {
	events, stop := b.Watch()
	go func() {
		for range events { //nolint:revive // only there to be listening
		}
	}()
	return stop
}

// start asks in the background; the answers come by the channel.
func start(ctx context.Context, b *approval.Broker, a *approval.Ask) <-chan []approval.Answer {
	out := make(chan []approval.Answer, 1)
	go func() { out <- b.Ask(ctx, a) }()
	synctest.Wait()
	return out
}

func ask(r ...*approval.Request) *approval.Ask { return &approval.Ask{Requests: r} }

// open returns the requests that wait for an answer.
func open(t *testing.T, b *approval.Broker, n int) []approval.Pending {
	t.Helper()
	list := b.List()
	if len(list) != n {
		t.Fatalf("%d requests wait, want %d: %+v", len(list), n, list)
	}
	return list
}

func decide(t *testing.T, b *approval.Broker, id string, c approval.Choice) {
	t.Helper()
	if err := b.Answer(id, approval.Decision{Choice: c, By: "ops"}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// approved asks about one call and has it approved.
func approved(t *testing.T, b *approval.Broker, r *approval.Request, c approval.Choice) approval.Answer {
	t.Helper()
	out := start(t.Context(), b, ask(r))
	decide(t, b, open(t, b, 1)[0].ID, c)
	a := (<-out)[0]
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	return a
}

func code(err *tool.Error) tool.Code {
	if err == nil {
		return ""
	}
	return err.Code
}

func TestAnApprovedCallRunsOnceAndExactlyAsApproved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		defer watch(b)()
		r := request()
		out := start(t.Context(), b, ask(r))
		p := open(t, b, 1)[0]
		want := approval.Pending{
			ID: p.ID, CallID: "call-1", Agent: "ann", Session: "s1", Tool: "wipe", Title: "Wipe", Source: tool.SourcePlugin, SourceName: "disk",
			Arguments: json.RawMessage(`{"disk":"sda"}`), Rule: "destructive (policy.hcl:3)", Reason: "it destroys",
			Choices: []approval.Choice{"once", "session", "always", "deny"}, Pattern: approval.Pattern{"disk": `"sda"`},
			Asked: time.Now(), Expires: time.Now().Add(5 * time.Minute), Binding: p.Binding, Call: r,
		}
		if diff := cmp.Diff(want, p); diff != "" {
			t.Errorf("what the human sees (-want +got):\n%s", diff)
		}
		decide(t, b, p.ID, approval.Once)
		a := (<-out)[0]
		if a.Err != nil || a.ID != p.ID || a.By != "ops" {
			t.Fatalf("answer %+v", a)
		}
		if err := b.Redeem(a.ID, r); err != nil {
			t.Fatal(err)
		}
		if err := b.Redeem(a.ID, r); code(err) != tool.ApprovalVoid {
			t.Errorf("used a second time: %v", err)
		}
		if g := b.Grants(); len(g) != 0 {
			t.Errorf("once stored %+v", g)
		}
	})
}

func TestAnApprovalIsVoidForAnythingElse(t *testing.T) {
	other := *wipe
	for name, change := range map[string]func(*testing.T, *approval.Broker, *approval.Request){
		"one byte of the arguments": func(_ *testing.T, _ *approval.Broker, r *approval.Request) {
			r.Arguments = json.RawMessage(`{"disk":"sdb"}`)
		},
		"a space in the arguments": func(_ *testing.T, _ *approval.Broker, r *approval.Request) {
			r.Arguments = json.RawMessage(`{"disk": "sda"}`)
		},
		"the agent":   func(_ *testing.T, _ *approval.Broker, r *approval.Request) { r.Agent = "bob" },
		"the session": func(_ *testing.T, _ *approval.Broker, r *approval.Request) { r.Session = "s2" },
		"the call":    func(_ *testing.T, _ *approval.Broker, r *approval.Request) { r.CallID = "call-2" },
		"the tool": func(_ *testing.T, _ *approval.Broker, r *approval.Request) {
			other.Name = "wipe2"
			r.Definition = &other
		},
		"the provider": func(_ *testing.T, _ *approval.Broker, r *approval.Request) {
			d := *wipe
			d.SourceName = "disk2"
			r.Definition = &d
		},
		"the policy of the call": func(_ *testing.T, _ *approval.Broker, r *approval.Request) { r.Policy = "v2" },
		"the policy in force": func(t *testing.T, b *approval.Broker, _ *approval.Request) {
			if err := b.Apply(&approval.Settings{Policy: "v2"}); err != nil {
				t.Fatal(err)
			}
		},
		"the policy of both": func(t *testing.T, b *approval.Broker, r *approval.Request) {
			if err := b.Apply(&approval.Settings{Policy: "v2"}); err != nil {
				t.Fatal(err)
			}
			r.Policy = "v2"
		},
		"the mode to deny": func(t *testing.T, b *approval.Broker, _ *approval.Request) {
			if err := b.Apply(&approval.Settings{Policy: "v1", Mode: approval.DenyAll}); err != nil {
				t.Fatal(err)
			}
		},
		"the time": func(*testing.T, *approval.Broker, *approval.Request) { time.Sleep(5 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t)
				defer watch(b)()
				r := request()
				a := approved(t, b, r, approval.Once)
				change(t, b, r)
				if err := b.Redeem(a.ID, r); code(err) != tool.ApprovalVoid {
					t.Errorf("run all the same: %v", err)
				}
				if err := b.Redeem(a.ID, request()); name != "the call" && code(err) != tool.ApprovalVoid {
					t.Errorf("used up, and run all the same afterwards: %v", err)
				}
			})
		})
	}
}

func TestAnApprovalHoldsUntilItsLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		defer watch(b)()
		a := approved(t, b, request(), approval.Once)
		time.Sleep(5*time.Minute - 1)
		if err := b.Redeem(a.ID, request()); err != nil {
			t.Error(err)
		}
	})
}

func TestSilenceDenialAndNobodyAreThreeAnswers(t *testing.T) {
	deny := func(t *testing.T, b *approval.Broker) {
		if err := b.Answer(open(t, b, 1)[0].ID, approval.Decision{Choice: approval.Deny, Reason: "use the\x1b[2J staging disk", By: "ops"}); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		listens bool
		change  func(*approval.Request)
		mode    approval.Mode
		wait    time.Duration
		act     func(*testing.T, *approval.Broker)
		code    tool.Code
		text    string
		after   time.Duration // how long the agent waited
	}{
		"a human who refuses is quoted":            {listens: true, act: deny, code: tool.ApprovalDenied, text: `a human refused it and said: use the\u{001b}[2J staging disk`},
		"silence is no consent":                    {listens: true, wait: time.Hour, code: tool.ApprovalTimeout, text: "Silence is not consent", after: 5 * time.Minute},
		"nobody listens":                           {code: tool.NobodyAsked, text: "nobody listens"},
		"an unattended agent":                      {listens: true, change: func(r *approval.Request) { r.Attended = false }, code: tool.NobodyAsked, text: "unattended"},
		"the operator refuses all":                 {listens: true, mode: approval.DenyAll, code: tool.NobodyAsked, text: "refused without asking"},
		"a human who thinks longer than the agent": {listens: true, code: tool.ApprovalPending, text: "Make the very same call again", after: 50 * time.Second},
		"an agent that does not wait at all":       {listens: true, wait: -1, code: tool.ApprovalPending, text: "5m0s left"},
		"the policy changes meanwhile": {listens: true, act: func(t *testing.T, b *approval.Broker) {
			if err := b.Apply(&approval.Settings{Policy: "v2"}); err != nil {
				t.Fatal(err)
			}
		}, code: tool.ApprovalVoid, text: "the policy has changed"},
		"a policy that is no longer in force": {listens: true, change: func(r *approval.Request) { r.Policy = "v0" }, code: tool.ApprovalVoid, text: "the policy has changed"},
		"the session ends meanwhile":          {listens: true, act: func(_ *testing.T, b *approval.Broker) { b.EndSession("ann", "s1") }, code: tool.ApprovalVoid, text: "the session is over"},
		"the daemon stops meanwhile":          {listens: true, act: func(_ *testing.T, b *approval.Broker) { b.Close() }, code: tool.ShuttingDown, text: "stopping"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t, func(o *approval.Options) { o.Mode, o.Wait = tt.mode, tt.wait })
				if tt.listens {
					defer watch(b)()
				}
				r := request()
				if tt.change != nil {
					tt.change(r)
				}
				began := time.Now()
				out := start(t.Context(), b, ask(r))
				if tt.act != nil {
					tt.act(t, b)
				}
				a := (<-out)[0]
				if code(a.Err) != tt.code || !strings.Contains(a.Err.Error(), tt.text) {
					t.Errorf("answer %q %v, want %q with %q", code(a.Err), a.Err, tt.code, tt.text)
				}
				if waited := time.Since(began); waited != tt.after {
					t.Errorf("the agent waited %s, want %s", waited, tt.after)
				}
				if err := b.Redeem(a.ID, r); err == nil {
					t.Error("the refused call can run")
				}
			})
		})
	}
}

func TestTheIdenticalCallJoinsWhatIsOpen(t *testing.T) {
	type step struct {
		act  func(*testing.T, *approval.Broker, string)
		code tool.Code
	}
	for name, tt := range map[string]step{
		"and is approved by an answer that came between": {func(t *testing.T, b *approval.Broker, id string) { decide(t, b, id, approval.Once) }, ""},
		"and hears of a refusal that came between":       {func(t *testing.T, b *approval.Broker, id string) { decide(t, b, id, approval.Deny) }, tool.ApprovalDenied},
		"and hears that nobody answered":                 {func(*testing.T, *approval.Broker, string) { time.Sleep(5 * time.Minute) }, tool.ApprovalTimeout},
		"and waits on": {func(_ *testing.T, b *approval.Broker, id string) {
			time.AfterFunc(time.Second, func() {
				b.Answer(id, approval.Decision{Choice: approval.Once}) //nolint:errcheck // the test fails below
			})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t)
				defer watch(b)()
				first := b.Ask(t.Context(), ask(request()))[0]
				if code(first.Err) != tool.ApprovalPending || first.Err.Extra["approval"] != first.ID {
					t.Fatalf("first answer %+v", first.Err)
				}
				tt.act(t, b, first.ID)
				again := request(call("call-2"))
				second := b.Ask(t.Context(), ask(again))[0]
				if code(second.Err) != tt.code || second.ID != first.ID {
					t.Fatalf("the identical call got %+v", second)
				}
				if tt.code == "" {
					if err := b.Redeem(second.ID, request()); code(err) != tool.ApprovalVoid {
						t.Errorf("the call that went away can run: %v", err)
					}
					if err := b.Redeem(second.ID, again); err != nil {
						t.Error(err)
					}
				}
				third := start(t.Context(), b, ask(request(call("call-3"))))
				if p := open(t, b, 1); p[0].ID == first.ID {
					t.Error("a third call got something out of a settled approval")
				}
				time.Sleep(time.Hour)
				<-third
			})
		})
	}
}

func TestIdenticalConcurrentCallsShareOnePrompt(t *testing.T) {
	for name, tt := range map[string]struct {
		choice approval.Choice
		codes  map[tool.Code]int
		then   int // requests that are open afterwards
	}{
		"once covers only the first": {approval.Once, map[tool.Code]int{"": 1}, 1},
		"session covers them all":    {approval.Session, map[tool.Code]int{"": 3}, 0},
		"always covers them all":     {approval.Always, map[tool.Code]int{"": 3}, 0},
		"deny refuses them all":      {approval.Deny, map[tool.Code]int{tool.ApprovalDenied: 3}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t)
				defer watch(b)()
				answers := make(chan approval.Answer, 3)
				requests := map[string]*approval.Request{}
				var ids []string
				for _, id := range []string{"a", "b", "c"} {
					requests[id] = request(call(id))
					go func() {
						a := b.Ask(t.Context(), ask(requests[id]))[0]
						if a.Err == nil {
							a.Err = b.Redeem(a.ID, requests[id])
						}
						answers <- a
					}()
					synctest.Wait()
				}
				ids = append(ids, open(t, b, 1)[0].ID)
				decide(t, b, ids[0], tt.choice)
				got := map[tool.Code]int{}
				for range len(answers) {
					got[code((<-answers).Err)]++
				}
				if diff := cmp.Diff(tt.codes, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				open(t, b, tt.then)
				time.Sleep(time.Hour)
			})
		})
	}
}

func TestABatchIsAskedAtOnceWithAChoiceForEachEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var prompts []*approval.Prompt
		var mu sync.Mutex
		b := newBroker(t, func(o *approval.Options) {
			o.Channels = []approval.Channel{&channel{name: "phone", ask: func(_ context.Context, p *approval.Prompt) (approval.Reply, error) {
				mu.Lock()
				defer mu.Unlock()
				prompts = append(prompts, p)
				return approval.Reply{
					p.Requests[0].ID: {Choice: approval.Once}, p.Requests[1].ID: {Choice: approval.Deny, Reason: "no"}, p.Requests[2].ID: {Choice: approval.Once},
				}, nil
			}}}
		})
		batch := ask(request(call("a")), request(call("b"), arguments(`{"disk":"sdb"}`)), request(call("c")))
		answers := b.Ask(t.Context(), batch)
		if len(prompts) != 1 || len(prompts[0].Requests) != 3 {
			t.Fatalf("the human was asked %d times", len(prompts))
		}
		var codes []tool.Code
		for i, a := range answers {
			codes = append(codes, code(a.Err))
			if a.Err == nil {
				if err := b.Redeem(a.ID, batch.Requests[i]); err != nil {
					t.Error(err)
				}
			}
		}
		if diff := cmp.Diff([]tool.Code{"", tool.ApprovalDenied, ""}, codes); diff != "" {
			t.Errorf("identical entries are decided each (-want +got):\n%s", diff)
		}
	})
}

// channel is a channel with behaviour.
type channel struct {
	name string
	deaf bool
	ask  func(context.Context, *approval.Prompt) (approval.Reply, error)
}

func (c *channel) Name() string    { return c.name }
func (c *channel) Listening() bool { return !c.deaf }
func (c *channel) Ask(ctx context.Context, p *approval.Prompt) (approval.Reply, error) {
	return c.ask(ctx, p)
}
