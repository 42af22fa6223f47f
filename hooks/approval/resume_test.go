package approval_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/hooks/approval"
	"github.com/hermesd/hermesd/runtime/tool"
)

// suspend asks through a client that brings its batch back, and returns what it was given.
func suspend(t *testing.T, b *approval.Broker, r ...*approval.Request) approval.Suspension {
	t.Helper()
	answers := b.Ask(t.Context(), &approval.Ask{Requests: r, Suspendable: true})
	for _, a := range answers {
		if a.Suspend != nil {
			var s approval.Suspension
			if err := json.Unmarshal(a.Suspend, &s); err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	t.Fatalf("nothing was suspended: %+v", answers)
	return approval.Suspension{}
}

// bring brings a batch back.
func bring(t *testing.T, b *approval.Broker, state, action, content string, r ...*approval.Request) []approval.Answer {
	t.Helper()
	raw, err := json.Marshal(approval.Resumption{State: state, Action: action, Content: json.RawMessage(content)})
	if err != nil {
		t.Fatal(err)
	}
	return b.Ask(t.Context(), &approval.Ask{Requests: r, Suspendable: true, Resume: string(raw)})
}

func TestABatchThatIsBroughtBackRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		first := []*approval.Request{request(call("1")), request(call("2"), arguments(`{}`)), request(call("3"))}
		s := suspend(t, b, first...)
		if len(s.Requests) != 3 || !strings.Contains(s.Message, "3 calls wait") || !json.Valid(s.Schema) {
			t.Fatalf("the client is given %+v", s)
		}
		time.Sleep(time.Minute)
		again := []*approval.Request{request(call("4")), request(call("5"), arguments(`{}`)), request(call("6"))}
		answers := bring(t, b, s.State, "accept", `{"choice_1":"once","choice_2":"deny","choice_3":"once"}`, again...)
		var codes []tool.Code
		for i, a := range answers {
			if codes = append(codes, code(a.Err)); a.Err == nil {
				if err := b.Redeem(a.ID, again[i]); err != nil || a.By != "client" {
					t.Errorf("%v by %q", err, a.By)
				}
				if err := b.Redeem(a.ID, first[i]); code(err) != tool.ApprovalVoid {
					t.Errorf("the suspended call runs, too: %v", err)
				}
			}
		}
		if diff := cmp.Diff([]tool.Code{"", tool.ApprovalDenied, ""}, codes); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, a := range bring(t, b, s.State, "accept", `{"choice_1":"once","choice_2":"once","choice_3":"once"}`, again...) {
			if code(a.Err) != tool.ApprovalVoid || !strings.Contains(a.Err.Error(), "was used already") {
				t.Errorf("brought back a second time: %v", a.Err)
			}
		}
	})
}

func TestAStateIsForItsOwnCallsOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*approval.Request)
		state  func(string) string
		before func(*testing.T, *approval.Broker)
	}{
		"one byte of the arguments": {change: arguments(`{"disk":"sdb"}`)},
		"another agent":             {change: func(r *approval.Request) { r.Agent = "bob" }},
		"another session":           {change: func(r *approval.Request) { r.Session = "s2" }},
		"another tool":              {change: func(r *approval.Request) { d := *wipe; d.Name = "wipe2"; r.Definition = &d }},
		"another policy": {change: func(r *approval.Request) { r.Policy = "v2" }, before: func(t *testing.T, b *approval.Broker) {
			if err := b.Apply(&approval.Settings{Policy: "v2"}); err != nil {
				t.Fatal(err)
			}
		}},
		"a new policy, the old one claimed": {before: func(t *testing.T, b *approval.Broker) {
			if err := b.Apply(&approval.Settings{Policy: "v2"}); err != nil {
				t.Fatal(err)
			}
		}},
		"past its expiry":       {before: func(*testing.T, *approval.Broker) { time.Sleep(5 * time.Minute) }},
		"one byte of the state": {state: func(s string) string { return "X" + s[1:] }},
		"one byte of its proof": {state: func(s string) string { return s[:len(s)-2] + "xx" }},
		"no state":              {state: func(string) string { return "" }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t)
				s := suspend(t, b, request())
				if tt.before != nil {
					tt.before(t, b)
				}
				if tt.state != nil {
					s.State = tt.state(s.State)
				}
				r := request(call("2"))
				if tt.change != nil {
					tt.change(r)
				}
				a := bring(t, b, s.State, "accept", `{"choice":"once"}`, r)[0]
				if code(a.Err) != tool.ApprovalVoid {
					t.Errorf("%+v", a)
				}
				if err := b.Redeem(a.ID, r); err == nil {
					t.Error("it runs")
				}
			})
		})
	}
}

func TestABatchIsBroughtBackWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		s := suspend(t, b, request(call("1")), request(call("2"))) // two calls that are the same
		if a := bring(t, b, s.State, "accept", `{"choice_1":"once","choice_2":"once"}`, request(call("3")))[0]; code(a.Err) != tool.ApprovalVoid {
			t.Errorf("one of two came back: %+v", a)
		}
	})
}

func TestWhatAClientBringsBackBesidesAYes(t *testing.T) {
	for name, tt := range map[string]struct {
		action, content string
		listens         bool
		code            tool.Code
	}{
		"a closed form, and nobody else listens": {"cancel", "", false, tool.ApprovalTimeout},
		"a closed form, while others can answer": {"cancel", "", true, tool.ApprovalPending},
		"a refusal":                              {"decline", "", false, tool.ApprovalDenied},
		"a form that does not fit":               {"accept", `{"choice":"perhaps"}`, false, tool.ApprovalVoid},
		"an empty form":                          {"accept", `{}`, false, tool.ApprovalVoid},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t)
				if tt.listens {
					defer watch(b)()
				}
				s := suspend(t, b, request())
				if a := bring(t, b, s.State, tt.action, tt.content, request(call("2")))[0]; code(a.Err) != tt.code {
					t.Errorf("%+v", a)
				}
			})
		})
	}
}

func TestAnotherChannelMayAnswerWhileTheClientIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		s := suspend(t, b, request())
		decide(t, b, s.Requests[0].ID, approval.Deny)
		if a := bring(t, b, s.State, "accept", `{"choice":"once"}`, request(call("2")))[0]; code(a.Err) != tool.ApprovalDenied || a.By != "ops" {
			t.Errorf("%+v", a)
		}
	})
}

func TestTheDaemonsKeyIsKept(t *testing.T) {
	dir := t.TempDir()
	k, err := approval.LoadKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := approval.LoadKey(dir)
	if err != nil || k != again || k == (approval.Key{}) {
		t.Errorf("%v, the same %t", err, k == again)
	}
	token, err := approval.Seal(k, &approval.State{Items: []approval.StateItem{{ID: "a", Binding: "b"}}, Expires: time.Now().Add(time.Minute).UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := approval.Open(k, token); err != nil || len(s.Items) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	other, err := approval.LoadKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := approval.Open(other, token); err == nil {
		t.Error("a token of another daemon was taken")
	}
}

// Whoever can plant a name in the state directory must not choose where the key is written.
func TestTheDaemonsKeyIsNotWrittenThroughALink(t *testing.T) {
	dir, target := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Symlink(target, filepath.Join(dir, "approval.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := approval.LoadKey(dir); err == nil {
		t.Error("a key was made")
	}
	if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the target of the link: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	k := approval.Key{1}
	good, err := approval.Seal(k, &approval.State{Items: []approval.StateItem{{ID: "a", Binding: "b"}}, Expires: 1 << 50})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good + "=")
	f.Add(good[1:])
	f.Add(".")
	f.Add("")
	f.Fuzz(func(t *testing.T, token string) {
		if s, err := approval.Open(k, token); err == nil && token != good {
			t.Errorf("%q was taken as %+v", token, s)
		}
	})
}

func FuzzParseForm(f *testing.F) {
	f.Add("accept", `{"choice_1":"once","choice_2":"deny","reason":"x"}`)
	f.Add("cancel", ``)
	requests := []approval.Pending{{ID: "a"}, {ID: "b"}}
	f.Fuzz(func(t *testing.T, action, content string) {
		reply, err := approval.ParseForm(requests, action, json.RawMessage(content))
		if (err == nil) != (len(reply) > 0) {
			t.Errorf("%v with %v", reply, err)
		}
	})
}
