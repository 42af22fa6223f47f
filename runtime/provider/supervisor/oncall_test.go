package supervisor_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Guards fault 37768: a call says that the server is not connected, while whoever asks the server itself gets an answer.
func TestACallTriesWhatIsDown37768(t *testing.T) {
	// down makes a bench whose server refuses until up is called, and leaves it with the longest of pauses before it.
	down := func(t *testing.T, opts supervisor.Options) (b *bench, up func()) {
		var back atomic.Bool
		opts.NeverQuarantine = true
		b = run(t, opts, func(int) error {
			if back.Load() {
				return nil
			}
			return errors.New("connection refused")
		})
		for b.Status().State != provider.Backoff || b.begun() < 12 {
			time.Sleep(time.Second)
		}
		time.Sleep(4 * time.Second)
		if b.Status().State != provider.Backoff {
			t.Fatal("it is not waiting for the next try")
		}
		return b, func() { back.Store(true) }
	}
	remote := supervisor.Options{TryOnCall: true}
	t.Run("a server that is back is there for the next call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, up := down(t, remote)
			up()
			begun := time.Now()
			b.use()
			if took := time.Since(begun); took != time.Second { // the start
				t.Errorf("took %v", took)
			}
		})
	})
	t.Run("a server that is not is tried for all who wait together, and they are told why it failed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, _ := down(t, remote)
			before := b.begun()
			var callers sync.WaitGroup
			for range 20 {
				callers.Go(func() {
					_, _, err := b.acquire()
					wantCode(t, err, tool.ProviderStarting)
					if !strings.Contains(err.Error(), "connection refused") {
						t.Error(err)
					}
				})
			}
			callers.Wait()
			if n := b.begun() - before; n < 1 || n > 2 { // two, if some came when the first had begun
				t.Errorf("%d tries for calls at one time", n)
			}
		})
	})
	for name, tt := range map[string]struct {
		min, gap time.Duration // from a failure to the next try
	}{
		"calls without end try it no more than once a second": {0, time.Second},
		"or as seldom as the operator wants":                  {4 * time.Second, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := down(t, supervisor.Options{TryOnCall: true, Backoff: supervisor.Backoff{Min: tt.min}})
				before := b.begun()
				for range 10 {
					_, _, err := b.acquire()
					wantCode(t, err, tool.ProviderStarting)
				}
				tries := b.starts[before:b.begun()]
				if len(tries) != 10 {
					t.Fatalf("%d tries for ten calls", len(tries))
				}
				for i := range tries[1:] {
					if gap := tries[i+1] - tries[i] - time.Second; gap != tt.gap {
						t.Errorf("the next try came %v after a failure, want %v", gap, tt.gap)
					}
				}
			})
		})
	}
	t.Run("a server that answers nothing keeps no caller for long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var silent atomic.Bool
			s, err := supervisor.New(func(ctx context.Context) (*thing, error) {
				if silent.Load() {
					<-ctx.Done()
				}
				return nil, errors.New("no answer")
			}, &supervisor.Options{Name: "p", NeverQuarantine: true, TryOnCall: true, StartTimeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- s.Run(ctx) }()
			time.Sleep(time.Minute)
			silent.Store(true)
			begun := time.Now()
			_, _, err = s.Acquire(t.Context())
			wantCode(t, err, tool.ProviderStarting)
			if took := time.Since(begun); took > 5*time.Second || !strings.Contains(err.Error(), "no answer") {
				t.Errorf("after %v: %v", took, err)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("a process that fails again and again keeps the pauses that the operator gave it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, up := down(t, supervisor.Options{})
			up()
			before := b.begun()
			_, _, err := b.acquire()
			wantCode(t, err, tool.ProviderStarting)
			if b.begun() != before {
				t.Error("a call started it")
			}
		})
	})
	t.Run("what is quarantined is not tried", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, up := down(t, remote)
			b.Quarantine("the operator has to look at it")
			up()
			before := b.begun()
			_, _, err := b.acquire()
			wantCode(t, err, tool.ProviderQuarantined)
			if b.begun() != before {
				t.Error("a call started it")
			}
		})
	})
}

// A server that ends soon after each start has not been well, so that the pauses grow; a call does not wait for them.
func TestACallTriesWhatDiedSoonAfterItsStart37768(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{TryOnCall: true, NeverQuarantine: true}, nil)
		for i := range 12 {
			begun := time.Now()
			if n := b.use(); n != i+1 {
				t.Fatalf("instance %d", n)
			}
			if took := time.Since(begun); took > 2*time.Second { // a pause of a second and a start of one
				t.Errorf("life %d was ready after %v", i, took)
			}
			b.Succeeded()
			synctest.Wait()
			b.things[i].die(errors.New("connection reset"))
			synctest.Wait()
		}
	})
}
