package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thing is an instance that dies when told.
type thing struct {
	number  int
	done    chan struct{}
	once    sync.Once
	err     error
	stopped atomic.Bool
	graced  atomic.Bool // Stop came with time left
}

func (t *thing) Done() <-chan struct{} { return t.done }
func (t *thing) Err() error            { return t.err }
func (t *thing) PID() int              { return 1000 + t.number }
func (t *thing) die(err error)         { t.once.Do(func() { t.err = err; close(t.done) }) }
func (t *thing) Stop(ctx context.Context) {
	t.stopped.Store(true)
	t.graced.Store(ctx.Err() == nil)
	t.die(nil)
}

// bench is a supervisor under test with what it did.
type bench struct {
	*supervisor.Supervisor[*thing]
	t      *testing.T
	mu     sync.Mutex
	starts []time.Duration // since the beginning
	things []*thing
	states []string
	ctx    context.Context
	stop   func()
}

// run starts a supervisor whose start function takes a second and fails as fail says (nil: never).
func run(t *testing.T, opts supervisor.Options, fail func(n int) error) *bench {
	t.Helper()
	b := &bench{t: t}
	begin := time.Now()
	opts.Name = "p"
	opts.OnStatus = func(s provider.Status) { b.states = append(b.states, string(s.State)) }
	s, err := supervisor.New(func(ctx context.Context) (*thing, error) {
		b.mu.Lock()
		b.starts = append(b.starts, time.Since(begin))
		b.mu.Unlock()
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if fail != nil {
			if err := fail(len(b.starts)); err != nil {
				return nil, err
			}
		}
		th := &thing{number: len(b.things) + 1, done: make(chan struct{})}
		b.things = append(b.things, th)
		return th, nil
	}, &opts)
	if err != nil {
		t.Fatal(err)
	}
	b.Supervisor = s
	ctx, cancel := context.WithCancel(t.Context())
	b.ctx = ctx
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(b.stop)
	return b
}

// acquire acquires with a minute's patience and reports the instance's number.
func (b *bench) acquire() (number int, release func(), err error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	th, release, err := b.Acquire(ctx)
	if err != nil {
		return 0, nil, err
	}
	return th.number, release, nil
}

func (b *bench) use() int {
	b.t.Helper()
	n, release, err := b.acquire()
	if err != nil {
		b.t.Fatal(err)
	}
	release()
	return n
}

// begun is how many starts were begun, once nothing goes on.
func (b *bench) begun() int {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.starts)
}

func (b *bench) wantStates(want ...provider.State) {
	b.t.Helper()
	synctest.Wait()
	var words []string
	for _, w := range want {
		words = append(words, string(w))
	}
	if diff := cmp.Diff(words, b.states); diff != "" {
		b.t.Errorf("states (-want +got):\n%s", diff)
	}
}

func wantCode(t *testing.T, err error, code tool.Code) {
	t.Helper()
	if got := tool.CodeOf(err); got != code {
		t.Errorf("code %q (%v), want %q", got, err, code)
	}
}

func TestALazyProviderStartsOnceForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{Lazy: true}, nil)
		time.Sleep(time.Hour)
		if len(b.starts) != 0 {
			t.Fatal("it started by itself")
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if n := b.use(); n != 1 {
					t.Errorf("instance %d", n)
				}
			})
		}
		wg.Wait()
		b.wantStates(provider.Starting, provider.Ready)
		if status := b.Status(); status.PID != 1001 || status.LastSuccess.IsZero() {
			t.Errorf("status %+v", status)
		}
		b.stop()
		b.wantStates(provider.Starting, provider.Ready, provider.Draining, provider.Stopped)
		_, _, err := b.Acquire(t.Context())
		wantCode(t, err, tool.ShuttingDown)
	})
}

func TestACallerWaitsNoLongerThanItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{Lazy: true}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, _, err := b.Acquire(ctx)
		wantCode(t, err, tool.ProviderStarting)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err = b.Acquire(cancelled)
		wantCode(t, err, tool.Cancelled)
		if n := b.use(); n != 1 || len(b.starts) != 1 {
			t.Errorf("instance %d after %d starts: the first start was not shared", n, len(b.starts))
		}
	})
}

func TestAWokenProviderIsTriedUntilItWasReadyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{Lazy: true, IdleTimeout: time.Minute}, func(n int) error {
			if n < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		b.Wake()
		time.Sleep(30 * time.Second)
		if status := b.Status(); status.State != provider.Ready || len(b.starts) != 3 {
			t.Errorf("after %d starts: %+v", len(b.starts), status)
		}
		time.Sleep(time.Hour)
		if status := b.Status(); status.State != provider.Installed || len(b.starts) != 3 {
			t.Errorf("after %d starts: %+v", len(b.starts), status)
		}
	})
}

func TestARestartWaitsForThoseWhoUseTheInstance(t *testing.T) {
	for name, tt := range map[string]struct {
		use  time.Duration
		want time.Duration
	}{
		"until they are done": {2 * time.Second, 2 * time.Second},
		"but not for ever":    {time.Hour, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := run(t, supervisor.Options{}, nil)
				_, release, err := b.acquire()
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(tt.use, release)
				begin := time.Now()
				b.Restart()
				if n := b.use(); n != 2 {
					t.Errorf("instance %d", n)
				}
				if took := time.Since(begin) - time.Second; took != tt.want {
					t.Errorf("took %v, want %v", took, tt.want)
				}
				release()
			})
		})
	}
}

func TestAnOldInstanceIsReplacedWhenUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{MaxLifetime: time.Hour}, nil)
		_, release, err := b.acquire()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		if b.things[0].stopped.Load() {
			t.Fatal("replaced in use")
		}
		release()
		time.Sleep(5 * time.Second)
		if n := b.use(); n != 2 {
			t.Errorf("instance %d", n)
		}
		if status := b.Status(); status.Restarts != 0 {
			t.Errorf("a planned replacement counts as %d restarts", status.Restarts)
		}
	})
}

func TestStartsShareTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := supervisor.NewGate(2)
		var all []*bench
		begin := time.Now()
		for range 6 {
			all = append(all, run(t, supervisor.Options{Starts: gate}, nil))
		}
		var when []time.Duration
		for _, b := range all {
			b.use()
		}
		for _, b := range all {
			when = append(when, b.Status().Since.Sub(begin))
		}
		slices.Sort(when)
		s := time.Second
		if diff := cmp.Diff([]time.Duration{s, s, 2 * s, 2 * s, 3 * s, 3 * s}, when); diff != "" {
			t.Errorf("ready (-want +got):\n%s", diff)
		}
	})
}

func TestAStartHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{StartTimeout: 100 * time.Millisecond}, nil)
		time.Sleep(150 * time.Millisecond)
		synctest.Wait()
		if status := b.Status(); status.State != provider.Backoff || status.Reason != context.DeadlineExceeded.Error() {
			t.Errorf("status %+v", status)
		}
	})
}
