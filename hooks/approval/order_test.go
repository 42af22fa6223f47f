package approval_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/hooks/approval"
)

// slowStore is a store whose additions wait until they are let go, or their time is over.
type slowStore struct {
	approval.Store
	slow bool
	free chan struct{}
}

func (s *slowStore) wait(ctx context.Context) error {
	if !s.slow {
		return nil
	}
	select {
	case <-s.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slowStore) AddGrant(ctx context.Context, g *approval.Grant) error {
	return errors.Join(s.wait(ctx), s.Store.AddGrant(ctx, g))
}

func (s *slowStore) Opened(ctx context.Context, p *approval.Pending) error {
	return errors.Join(s.wait(ctx), s.Store.Opened(ctx, p))
}

func newSlowStore() *slowStore {
	return &slowStore{Store: approval.NewMemory(), free: make(chan struct{})}
}

func TestAGrantThatIsRevokedAtOnceDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSlowStore()
		b := newBroker(t, func(o *approval.Options) { o.Store = store })
		defer watch(b)()
		out := start(t.Context(), b, ask(request()))
		store.slow = true
		answered := make(chan error, 1)
		id := open(t, b, 1)[0].ID
		go func() { answered <- b.Answer(id, approval.Decision{Choice: approval.Always, By: "ops"}) }()
		synctest.Wait()
		revoked := make(chan error, 1)
		go func() { revoked <- b.Revoke(t.Context(), b.Grants()[0].ID) }()
		synctest.Wait()
		close(store.free)
		if err := errors.Join(<-answered, <-revoked); err != nil {
			t.Error(err)
		}
		<-out
		if left, err := store.Grants(t.Context()); err != nil || len(left) != 0 {
			t.Errorf("after the next start there would be %+v, %v", left, err)
		}
	})
}

func TestARequestThatIsAnsweredAtOnceIsNotLeftOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSlowStore()
		var told []string
		b := newBroker(t, func(o *approval.Options) {
			o.Store = store
			o.OnAsked = func(*approval.Pending) { told = append(told, "asked") }
			o.OnClosed = func(*approval.Closed) { told = append(told, "closed") }
		})
		defer watch(b)()
		store.slow = true
		out := start(t.Context(), b, ask(request()))
		answered := make(chan error, 1)
		id := open(t, b, 1)[0].ID
		go func() { answered <- b.Answer(id, approval.Decision{Choice: approval.Once, By: "ops"}) }()
		synctest.Wait()
		close(store.free)
		if err := <-answered; err != nil {
			t.Error(err)
		}
		<-out
		if left, err := store.Left(t.Context()); err != nil || len(left) != 0 {
			t.Errorf("the next start would find %+v, %v", left, err)
		}
		if diff := cmp.Diff([]string{"asked", "closed"}, told); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Each write has its own five seconds from when it was decided, not after those before it.
func TestAStoreThatHangsHoldsNobodyLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSlowStore()
		store.slow = true
		b := newBroker(t, func(o *approval.Options) { o.Store, o.Wait = store, -1 })
		defer watch(b)()
		began := time.Now()
		var outs []<-chan []approval.Answer
		for _, id := range []string{"1", "2", "3"} {
			outs = append(outs, start(t.Context(), b, ask(request(call(id), arguments(`{"n":`+id+`}`)))))
		}
		for _, out := range outs {
			<-out
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("three calls were held for %v", took)
		}
	})
}
