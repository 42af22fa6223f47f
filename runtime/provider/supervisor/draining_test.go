package supervisor_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
	"github.com/hermesd/hermesd/runtime/tool"
)

// slow runs a supervisor whose instances use up the grace that they have to stop.
func slow(t *testing.T, opts supervisor.Options) (s *supervisor.Supervisor[*stubborn], stop func()) {
	t.Helper()
	opts.Name = "p"
	s, err := supervisor.New(func(context.Context) (*stubborn, error) { return &stubborn{make(chan struct{})}, nil }, &opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return s, func() {
		cancel()
		<-ended
	}
}

// A server that is slow to stop is being stopped, for reasons after which it starts again: calls wait for that.
func TestACallWaitsWhileTheInstanceBeforeIsStopped(t *testing.T) {
	for name, tt := range map[string]struct {
		opts   supervisor.Options
		begin  func(s *supervisor.Supervisor[*stubborn])
		reason string
	}{
		"because it was idle": {supervisor.Options{Lazy: true, IdleTimeout: 2 * time.Second},
			func(*supervisor.Supervisor[*stubborn]) { time.Sleep(2500 * time.Millisecond) }, "nobody has used it for 2s"},
		"because it has lived long enough": {supervisor.Options{MaxLifetime: 6 * time.Second},
			func(*supervisor.Supervisor[*stubborn]) { time.Sleep(6500 * time.Millisecond) }, "it has run for 6s"},
		"because the operator restarts it": {supervisor.Options{},
			func(s *supervisor.Supervisor[*stubborn]) { s.Restart() }, "the operator"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, stop := slow(t, tt.opts)
				defer stop()
				before, release, err := s.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				release()
				tt.begin(s)
				synctest.Wait()
				if status := s.Status(); status.State != provider.Draining || !strings.Contains(status.Reason, tt.reason) {
					t.Errorf("status %+v", status)
				}
				hasty, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, _, err = s.Acquire(hasty)
				wantCode(t, err, tool.ProviderStarting)
				if !strings.Contains(err.Error(), tt.reason) {
					t.Errorf("who cannot wait reads: %v", err)
				}
				var calls sync.WaitGroup
				for range 10 {
					calls.Go(func() {
						after, release, err := s.Acquire(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						release()
						if after == before {
							t.Error("the old instance is used")
						}
					})
				}
				calls.Wait()
			})
		})
	}
}

func TestACallDoesNotWaitForWhatNeverStartsAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		end   func(s *supervisor.Supervisor[*stubborn], stop func())
		state provider.State
		code  tool.Code
	}{
		"because the daemon stops": {func(_ *supervisor.Supervisor[*stubborn], stop func()) { go stop() }, provider.Draining, tool.ShuttingDown},
		"because it is quarantined": {func(s *supervisor.Supervisor[*stubborn], _ func()) { s.Quarantine("its definitions changed") },
			provider.Quarantined, tool.ProviderQuarantined},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, stop := slow(t, supervisor.Options{})
				defer stop()
				_, release, err := s.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				release()
				tt.end(s, stop)
				synctest.Wait()
				if status := s.Status(); status.State != tt.state || status.Reason == "" {
					t.Errorf("status %+v", status)
				}
				begun := time.Now()
				_, _, err = s.Acquire(t.Context())
				wantCode(t, err, tt.code)
				if took := time.Since(begun); took != 0 {
					t.Errorf("told after %v", took)
				}
			})
		})
	}
}

// Calls that follow each other without a gap keep nothing alive for ever, and none of them fails when it is replaced.
func TestAnOldInstanceIsReplacedUnderSteadyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{MaxLifetime: 10 * time.Second}, nil)
		last := 0
		for begun := time.Now(); time.Since(begun) < time.Minute; {
			n, release, err := b.acquire()
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(7 * time.Second) // longer than a drain may take
			synctest.Wait()
			if b.things[n-1].stopped.Load() {
				t.Fatal("it was stopped while it was used")
			}
			release()
			last = n
		}
		if last < 4 {
			t.Errorf("%d instances in a minute", last)
		}
		if status := b.Status(); status.Restarts != 0 {
			t.Errorf("a planned replacement counts as %d restarts", status.Restarts)
		}
	})
}
