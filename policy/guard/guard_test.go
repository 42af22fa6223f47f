package guard_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/policy/guard"
	"github.com/hermesd/hermesd/runtime/tool"
)

func newGuard(t *testing.T, l guard.Limits, change ...func(*guard.Options)) *guard.Guard {
	t.Helper()
	o := &guard.Options{Limits: func(string) guard.Limits { return l }}
	for _, c := range change {
		c(o)
	}
	g, err := guard.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func call(change ...func(*guard.Call)) *guard.Call {
	c := &guard.Call{Agent: "ann", Session: "s1", Tool: "read", Arguments: json.RawMessage(`{"path":"x","n":1}`)}
	for _, f := range change {
		f(c)
	}
	return c
}

func args(raw string) func(*guard.Call) {
	return func(c *guard.Call) { c.Arguments = json.RawMessage(raw) }
}

// one makes a call that ends as given, and says what became of it: "ok", "note", "refused" by Admit, or "replaced".
func one(g *guard.Guard, c *guard.Call, out guard.Outcome) string {
	leave, err := g.Admit(c)
	if err != nil {
		g.Count(c, &guard.Outcome{Err: err})
		return "refused: " + string(err.Code)
	}
	defer leave()
	switch j := g.Count(c, &out); {
	case j.Err != nil:
		return "replaced: " + string(j.Err.Code)
	case j.Note != "":
		return "note"
	default:
		return "ok"
	}
}

func TestLoops(t *testing.T) {
	invalid := guard.Outcome{Err: tool.Errorf(tool.InvalidArguments, "x")}
	failed := guard.Outcome{IsError: true}
	down := guard.Outcome{Err: tool.Errorf(tool.DownstreamFailed, "x")}
	fine := guard.Outcome{}
	yes := true
	polled := func(c *guard.Call) {
		c.Definition = &tool.Definition{Annotations: tool.Annotations{ReadOnly: &yes, Idempotent: &yes}}
	}
	unlike := func(n int) func(*guard.Call) { return args(fmt.Sprintf(`{"n":%d}`, n)) }
	const blocked = "refused: loop_blocked"
	for name, tt := range map[string]struct {
		calls func(n int) (*guard.Call, guard.Outcome)
		n     int
		want  []string
	}{
		"the same failing call is warned at 2 and refused at 5": {func(int) (*guard.Call, guard.Outcome) { return call(), failed }, 7,
			[]string{"ok", "note", "note", "note", blocked, blocked, blocked}},
		"so is one that is refused by a later stage": {func(int) (*guard.Call, guard.Outcome) { return call(), invalid }, 6,
			[]string{"ok", "note", "note", "note", blocked, blocked}},
		"the same call in another writing": {func(n int) (*guard.Call, guard.Outcome) {
			return call(args([]string{`{"n":1,"path":"x"}`, `{ "path" : "x", "n" : 1 }`}[n%2])), failed
		}, 5, []string{"ok", "note", "note", "note", blocked}},
		"calls that are no JSON": {func(int) (*guard.Call, guard.Outcome) { return call(args(`{`)), invalid }, 5,
			[]string{"ok", "note", "note", "note", blocked}},
		"one tool with other arguments is warned at 3 and refused at 8": {func(n int) (*guard.Call, guard.Outcome) { return call(unlike(n)), failed }, 9,
			[]string{"ok", "ok", "note", "note", "note", "note", "note", blocked, blocked}},
		"a success starts the count again": {func(n int) (*guard.Call, guard.Outcome) {
			if n == 3 {
				return call(), fine
			}
			return call(), failed
		}, 6, []string{"ok", "note", "note", "ok", "ok", "note"}},
		"successes are never counted": {func(int) (*guard.Call, guard.Outcome) { return call(), fine }, 4, []string{"ok", "ok", "ok", "ok"}},
		"sessions are apart": {func(n int) (*guard.Call, guard.Outcome) {
			return call(func(c *guard.Call) { c.Session = fmt.Sprint(n) }), failed
		}, 4, []string{"ok", "ok", "ok", "ok"}},
		"agents are apart": {func(n int) (*guard.Call, guard.Outcome) {
			return call(func(c *guard.Call) { c.Agent = fmt.Sprint(n) }), failed
		}, 4, []string{"ok", "ok", "ok", "ok"}},
		"polling a tool that is not ready": {func(int) (*guard.Call, guard.Outcome) { return call(polled), down }, 6,
			[]string{"ok", "ok", "ok", "ok", "ok", "ok"}},
		"polling with arguments that never fit": {func(int) (*guard.Call, guard.Outcome) { return call(polled), invalid }, 5,
			[]string{"ok", "note", "note", "note", blocked}},
		"repeating what may change something": {func(int) (*guard.Call, guard.Outcome) { return call(), down }, 5,
			[]string{"ok", "note", "note", "note", blocked}},
		"asking for an approval that is pending": {func(int) (*guard.Call, guard.Outcome) {
			return call(), guard.Outcome{Err: tool.Errorf(tool.ApprovalPending, "x")}
		}, 6, []string{"ok", "ok", "ok", "ok", "ok", "ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, guard.Defaults())
			var got []string
			for n := range tt.n {
				got = append(got, one(g, call2(tt.calls(n)), outcome2(tt.calls(n))))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func call2(c *guard.Call, _ guard.Outcome) *guard.Call      { return c }
func outcome2(_ *guard.Call, o guard.Outcome) guard.Outcome { return o }

// away is every error that says that a tool could not be had.
var away = []tool.Code{
	tool.UnknownTool, tool.ProviderStarting, tool.ProviderDown, tool.ProviderQuarantined, tool.NotSent, tool.NotAvailable, tool.AuditUnavailable,
}

func TestAToolThatWasAwayRunsAsSoonAsItIsBack(t *testing.T) {
	for _, code := range away {
		t.Run(string(code), func(t *testing.T) {
			g := newGuard(t, guard.Defaults())
			var got []string
			for range 9 {
				got = append(got, one(g, call(), guard.Outcome{Err: tool.Errorf(code, "x")}))
			}
			got = append(got, one(g, call(), guard.Outcome{}), one(g, call(), guard.Outcome{IsError: true}))
			const ended = "replaced: loop_blocked"
			if diff := cmp.Diff([]string{"ok", "note", "note", "note", ended, ended, ended, ended, ended, "ok", "ok"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAToolSaysThatWasAwayIsHeard(t *testing.T) {
	invalid := guard.Outcome{Err: tool.Errorf(tool.InvalidArguments, "x")}
	for _, code := range away {
		t.Run(string(code), func(t *testing.T) {
			g := newGuard(t, guard.Defaults())
			for range 9 {
				one(g, call(), guard.Outcome{Err: tool.Errorf(code, "x")})
			}
			var got []string
			for range 5 {
				got = append(got, one(g, call(), invalid))
			}
			got = append(got, one(g, call(), guard.Outcome{Err: tool.Errorf(code, "x")}))
			if diff := cmp.Diff([]string{"ok", "note", "note", "note", "refused: loop_blocked", "refused: loop_blocked"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Guards fault 125368 where the tool comes and goes: faults of the arguments add up all the same.
func TestAToolThatComesAndGoesDoesNotHideALoop(t *testing.T) {
	g := newGuard(t, guard.Defaults())
	var got string
	for range 4 {
		one(g, call(), guard.Outcome{Err: tool.Errorf(tool.ProviderDown, "x")})
		got = one(g, call(), guard.Outcome{Err: tool.Errorf(tool.InvalidArguments, "x")})
	}
	if got != "note" {
		t.Errorf("the fourth: %s", got)
	}
	if got := one(g, call(), guard.Outcome{}); got != "refused: loop_blocked" {
		t.Errorf("the fifth: %s", got)
	}
}

func TestACallThatIsRefusedBeforeTheGuardIsEndedToo(t *testing.T) {
	g := newGuard(t, guard.Defaults())
	var got []tool.Code
	for range 6 { // the scope stage refuses it: Admit is never asked
		j := g.Count(call(), &guard.Outcome{Err: tool.Errorf(tool.UnknownTool, "x")})
		if j.Err != nil {
			got = append(got, j.Err.Code)
		} else {
			got = append(got, "")
		}
	}
	if diff := cmp.Diff([]tool.Code{"", "", "", "", tool.LoopBlocked, tool.LoopBlocked}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNewsOfACallThatRanIsNeverReplaced(t *testing.T) {
	g := newGuard(t, guard.Limits{SameCallBlock: 1})
	if j := g.Count(call(), &guard.Outcome{Err: tool.Errorf(tool.OutcomeUnknown, "x")}); j.Err != nil {
		t.Errorf("the agent does not get to know that it may have run: %v", j.Err)
	}
}

func TestFailuresAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, guard.Defaults())
		fail := func() string { return one(g, call(), guard.Outcome{IsError: true}) }
		for range 5 {
			fail()
		}
		time.Sleep(9 * time.Minute)
		if got := fail(); got != "refused: loop_blocked" {
			t.Errorf("after 9 minutes: %s", got)
		}
		time.Sleep(time.Minute)
		if got := fail(); got != "ok" {
			t.Errorf("10 minutes after the last failure that ran: %s", got)
		}
	})
	g := newGuard(t, guard.Defaults())
	for range 4 {
		one(g, call(), guard.Outcome{IsError: true})
	}
	g.EndSession("ann", "s1")
	if got := one(g, call(), guard.Outcome{IsError: true}); got != "ok" {
		t.Errorf("in a new session of the same name: %s", got)
	}
}

func TestSessionsAndCallsAreBounded(t *testing.T) {
	g := newGuard(t, guard.Limits{SameCallWarn: 2}, func(o *guard.Options) { o.Sessions = 2 })
	fail := func(session, tool string, n int) string {
		return one(g, call(args(fmt.Sprint(n)), func(c *guard.Call) { c.Session, c.Tool = session, tool }), guard.Outcome{IsError: true})
	}
	fail("a", "t", 0)
	fail("b", "t", 0)
	fail("a", "t", 1) // a was used last
	fail("c", "t", 0)
	if got := []string{fail("a", "t", 0), fail("b", "t", 0)}; !cmp.Equal(got, []string{"note", "ok"}) {
		t.Errorf("the session that was not used for longest is not the forgotten one: %v", got)
	}
	fail("z", "t", 0)
	for n := 1; n <= 128; n++ {
		fail("z", fmt.Sprint("t", n), n)
	}
	if got := []string{fail("z", "t128", 128), fail("z", "t", 0)}; !cmp.Equal(got, []string{"note", "ok"}) {
		t.Errorf("a session counts more than 128 calls, or forgot the newest: %v", got)
	}
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, guard.Limits{CallsPerMinute: 60})
		admitted := func() (n int) {
			for {
				leave, err := g.Admit(call())
				if err != nil {
					if err.Code != tool.RateLimited || !err.Retryable || err.Extra["retry_after_ms"] == nil {
						t.Fatalf("%+v", err)
					}
					return n
				}
				leave()
				n++
			}
		}
		if n := admitted(); n != 60 {
			t.Errorf("%d at once", n)
		}
		time.Sleep(10 * time.Second)
		if n := admitted(); n != 10 {
			t.Errorf("%d after 10 seconds", n)
		}
		_, err := g.Admit(call())
		time.Sleep(time.Duration(err.Extra["retry_after_ms"].(int64)) * time.Millisecond)
		if n := admitted(); n != 1 {
			t.Errorf("%d after the time that the refusal named", n)
		}
		time.Sleep(time.Hour)
		if n := admitted(); n != 60 {
			t.Errorf("%d after an hour", n)
		}
		if leave, err := g.Admit(call(func(c *guard.Call) { c.Agent = "bob" })); err != nil {
			t.Errorf("another agent pays for it: %v", err)
		} else {
			leave()
		}
	})
}

func TestConcurrency(t *testing.T) {
	g := newGuard(t, guard.Limits{ConcurrentCalls: 2})
	a, err := g.Admit(call())
	if err != nil {
		t.Fatal(err)
	}
	b, err := g.Admit(call())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Admit(call()); err == nil || err.Code != tool.RateLimited || !strings.Contains(err.Message, "2 calls") {
		t.Errorf("a third one: %v", err)
	}
	a()
	a() // leaving twice frees one place
	if c, err := g.Admit(call()); err != nil {
		t.Errorf("after one left: %v", err)
	} else if _, err := g.Admit(call()); err == nil {
		t.Error("leaving twice freed two places")
	} else {
		c()
	}
	b()
}

func TestManyAtOnce(t *testing.T) {
	g := newGuard(t, guard.Defaults())
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 200 {
				one(g, call(args(fmt.Sprint(n%7)), func(c *guard.Call) { c.Session = fmt.Sprint(i % 3) }), guard.Outcome{IsError: n%3 == 0})
			}
		})
	}
	wg.Wait()
}

func TestNoLimits(t *testing.T) {
	g := newGuard(t, guard.Limits{})
	for range 300 {
		if got := one(g, call(), guard.Outcome{IsError: true}); got != "ok" {
			t.Fatal(got)
		}
	}
	if _, err := guard.New(&guard.Options{Sessions: -1}); err == nil {
		t.Error("a negative bound was taken")
	}
}
