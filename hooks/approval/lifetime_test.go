package approval_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/hooks/approval"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestTheClockThatCountsIsTheMonotonicOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, func(o *approval.Options) { o.Wait = time.Hour })
		defer watch(b)()
		out := start(t.Context(), b, ask(request()))
		id := open(t, b, 1)[0].ID
		time.Sleep(5*time.Minute - 1)
		decide(t, b, id, approval.Once) // in the last moment
		if a := (<-out)[0]; a.Err != nil {
			t.Errorf("an answer that was settled first does not count: %v", a.Err)
		}
		if err := b.Answer(id, approval.Decision{Choice: approval.Deny}); !errors.Is(err, approval.ErrSettled) && !errors.Is(err, approval.ErrUnknown) {
			t.Errorf("a later answer: %v", err)
		}
		out = start(t.Context(), b, ask(request(call("2"))))
		id = open(t, b, 1)[0].ID
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if err := b.Answer(id, approval.Decision{Choice: approval.Once}); !errors.Is(err, approval.ErrSettled) || !strings.Contains(err.Error(), "nobody answered in time") {
			t.Errorf("an answer after the deadline: %v", err)
		}
		if a := (<-out)[0]; code(a.Err) != tool.ApprovalTimeout {
			t.Errorf("%+v", a)
		}
	})
}

func TestProgressIsToldWhileAHumanThinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		defer watch(b)()
		var told []time.Duration
		a := ask(request())
		a.Progress = func(d time.Duration) { told = append(told, d) }
		b.Ask(t.Context(), a)
		if want := []time.Duration{10e9, 20e9, 30e9, 40e9}; !cmp.Equal(want, told[:4]) {
			t.Errorf("told at %v", told)
		}
	})
}

func TestACallerWhoGivesUpLeavesTheRequestOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		defer watch(b)()
		ctx, cancel := context.WithCancel(t.Context())
		out := start(ctx, b, ask(request()))
		cancel()
		if a := (<-out)[0]; code(a.Err) != tool.Cancelled {
			t.Fatalf("%+v", a)
		}
		decide(t, b, open(t, b, 1)[0].ID, approval.Once)
		again := request(call("call-2"))
		a := b.Ask(t.Context(), ask(again))[0]
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		if err := b.Redeem(a.ID, again); err != nil {
			t.Error(err)
		}
	})
}

func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := approval.NewMemory()
		with := func(o *approval.Options) { o.Store = store }
		b := newBroker(t, with)
		stop := watch(b)
		approved(t, b, request(arguments(`{"disk":"kept"}`)), approval.Always)
		approved(t, b, request(arguments(`{"disk":"gone"}`), func(r *approval.Request) { r.Key = "other" }), approval.Session)
		ctx, crash := context.WithCancel(t.Context())
		out := start(ctx, b, ask(request()))
		id := open(t, b, 1)[0].ID
		crash() // the daemon is gone without closing anything
		<-out
		stop()

		b2 := newBroker(t, with)
		defer watch(b2)()
		p := open(t, b2, 1)[0]
		if !p.Lost || p.ID != id {
			t.Errorf("what is left: %+v", p)
		}
		if err := b2.Answer(id, approval.Decision{Choice: approval.Once}); !errors.Is(err, approval.ErrSettled) {
			t.Errorf("a call of the daemon before was approved: %v", err)
		}
		if g := b2.Grants(); len(g) != 1 || g[0].Kind != approval.Always {
			t.Errorf("grants after the restart: %+v", g)
		}
		again := start(t.Context(), b2, ask(request()))
		if n := len(b2.List()); n != 2 {
			t.Errorf("the call is not asked about again: %d", n)
		}
		time.Sleep(time.Hour)
		<-again
		open(t, b2, 0)
		if left, err := store.Left(t.Context()); err != nil || len(left) != 0 {
			t.Errorf("what a third start would find: %+v, %v", left, err)
		}
	})
}

func TestEveryRequestAndItsEndAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := newBroker(t, func(o *approval.Options) {
			o.OnAsked = func(p *approval.Pending) { log.WriteString("asked " + string(p.Arguments) + "\n") }
			o.OnClosed = func(c *approval.Closed) {
				log.WriteString("closed " + string(c.Decision.Choice) + " " + c.Decision.By + " " + string(c.Code) + "\n")
			}
			o.Mask = func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
		})
		events, stop := b.Watch()
		out := start(t.Context(), b, ask(request(arguments(`{"password":"hunter2"}`))))
		decide(t, b, open(t, b, 1)[0].ID, approval.Once)
		<-out
		b.Ask(t.Context(), ask(request(call("2"))))
		time.Sleep(time.Hour)
		synctest.Wait()
		want := "asked {\"password\":\"***\"}\nclosed once ops \nasked {\"disk\":\"sda\"}\nclosed   approval_timeout\n"
		if diff := cmp.Diff(want, log.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		stop()
		n := 0
		for range events {
			n++
		}
		if n != 4 {
			t.Errorf("a watcher saw %d events", n)
		}
	})
}

func TestOpenRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, func(o *approval.Options) { o.MaxOpen = 1 })
		defer watch(b)()
		answers := b.Ask(t.Context(), ask(request(), request(call("2"), arguments(`{}`))))
		if code(answers[0].Err) != tool.ApprovalPending || code(answers[1].Err) != tool.RateLimited {
			t.Errorf("%v, %v", answers[0].Err, answers[1].Err)
		}
		if a := b.Ask(t.Context(), ask(request(func(r *approval.Request) { r.Agent = "bob" })))[0]; code(a.Err) != tool.ApprovalPending {
			t.Errorf("another agent pays for it: %v", a.Err)
		}
	})
}
