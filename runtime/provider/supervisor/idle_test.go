package supervisor_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
)

func TestAnIdleProviderStopsAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{Lazy: true, IdleTimeout: time.Minute}, nil)
		_, release, err := b.acquire()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if b.things[0].stopped.Load() {
			t.Fatal("stopped while it was in use")
		}
		release()
		time.Sleep(59 * time.Second)
		b.use()
		time.Sleep(59 * time.Second)
		if b.things[0].stopped.Load() {
			t.Fatal("stopped a minute after an earlier use")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !b.things[0].stopped.Load() || !b.things[0].graced.Load() {
			t.Error("not stopped with grace after a minute without use")
		}
		if status := b.Status(); status.State != provider.Installed || status.Reason != "" || status.PID != 0 {
			t.Errorf("status %+v", status)
		}
		if n := b.use(); n != 2 {
			t.Errorf("instance %d", n)
		}
	})
}

func TestALazyProviderThatIsWantedIsNotIdleAndComesBackByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wanted atomic.Bool
		b := run(t, supervisor.Options{Lazy: true, IdleTimeout: time.Minute, MaxLifetime: time.Hour, Wanted: wanted.Load}, nil)
		_, release, err := b.Acquire(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		wanted.Store(true)
		release()
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if n, s := len(b.starts), b.Status().State; s != provider.Ready || n != 1 {
			t.Errorf("idle for long, it is %s after %d starts", s, n)
		}
		b.things[0].die(errors.New("killed"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if n, s := len(b.starts), b.Status().State; s != provider.Ready || n != 2 {
			t.Errorf("after its end it is %s after %d starts", s, n)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n, s := len(b.starts), b.Status().State; s != provider.Ready || n < 3 {
			t.Errorf("after its lifetime it is %s after %d starts", s, n)
		}
		wanted.Store(false)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if s := b.Status().State; s != provider.Installed {
			t.Errorf("wanted no more, it is %s", s)
		}
	})
}

func TestAnEagerProviderIsNeverIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{IdleTimeout: time.Minute}, nil)
		time.Sleep(time.Hour)
		if status := b.Status(); status.State != provider.Ready || len(b.starts) != 1 {
			t.Errorf("after %d starts: %+v", len(b.starts), status)
		}
	})
}
