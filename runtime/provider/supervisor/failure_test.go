package supervisor_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestACrashOfAWellProviderIsMendedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{}, nil)
		b.use()
		time.Sleep(time.Minute)
		b.Succeeded()
		before := len(b.starts)
		b.things[0].die(errors.New("killed by SIGKILL"))
		begin := time.Now()
		if n := b.use(); n != 2 || len(b.starts) != before+1 {
			t.Errorf("instance %d", n)
		}
		if took := time.Since(begin); took > 1100*time.Millisecond { // a start takes a second here
			t.Errorf("took %v", took)
		}
		b.wantStates(provider.Starting, provider.Ready, provider.Backoff, provider.Starting, provider.Ready)
		if status := b.Status(); status.Restarts != 1 {
			t.Errorf("restarts %d", status.Restarts)
		}
	})
}

func TestALazyProviderThatCrashedStartsWithTheNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{Lazy: true}, nil)
		b.use()
		b.Succeeded()
		time.Sleep(time.Minute)
		b.things[0].die(errors.New("killed"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if status := b.Status(); status.State != provider.Installed || status.Reason != "killed" || len(b.starts) != 1 {
			t.Errorf("after %d starts: %+v", len(b.starts), status)
		}
		if n := b.use(); n != 2 {
			t.Errorf("instance %d", n)
		}
	})
}

func TestFailedStartsBackOffAndThenQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{}, func(n int) error { return fmt.Errorf("bad luck %d", n) })
		_, _, err := b.acquire()
		wantCode(t, err, tool.ProviderQuarantined)
		if b.begun() != 5 {
			t.Fatalf("%d starts", len(b.starts))
		}
		for i, want := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond} {
			pause := b.starts[i+1] - b.starts[i] - time.Second
			if pause < want*3/4 || pause > want*5/4 {
				t.Errorf("pause %d was %v, want about %v", i+1, pause, want)
			}
		}
		status := b.Status()
		if want := "it failed 5 times within 10m0s, the last time: bad luck 5"; status.State != provider.Quarantined || status.Reason != want {
			t.Errorf("status %+v, want reason %q", status, want)
		}
		time.Sleep(time.Hour)
		if len(b.starts) != 5 {
			t.Error("it started although quarantined")
		}
	})
}

func TestRestartEndsAQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := true
		b := run(t, supervisor.Options{Lazy: true}, func(int) error {
			if bad {
				return supervisor.Permanent{Err: errors.New("config: /url: missing")}
			}
			return nil
		})
		_, _, err := b.acquire()
		wantCode(t, err, tool.ProviderQuarantined)
		if len(b.starts) != 1 {
			t.Errorf("%d starts with a configuration that cannot work", len(b.starts))
		}
		bad = false
		b.Restart()
		if n := b.use(); n != 1 {
			t.Errorf("instance %d", n)
		}
	})
}

func TestFailuresFarApartDoNotQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{}, nil)
		for i := range 12 {
			if n := b.use(); n != i+1 {
				t.Fatalf("instance %d", n)
			}
			time.Sleep(3 * time.Minute)
			b.things[i].die(errors.New("gone"))
			synctest.Wait()
		}
	})
}

func TestAServerIsTriedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{NeverQuarantine: true}, func(n int) error {
			if n <= 20 {
				return errors.New("refused")
			}
			return nil
		})
		time.Sleep(time.Minute)
		_, _, err := b.acquire()
		wantCode(t, err, tool.ProviderStarting) // told, rather than left waiting for a try in half a minute
		time.Sleep(15 * time.Minute)            // nobody calls, and it is tried all the same
		if n := b.use(); n != 1 {
			t.Errorf("instance %d", n)
		}
		var longest time.Duration
		for i := range b.starts[1:] {
			longest = max(longest, b.starts[i+1]-b.starts[i])
		}
		if longest > 39*time.Second {
			t.Errorf("longest pause %v", longest)
		}
	})
}

func TestATransportFaultReplacesTheInstanceWithoutGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{}, nil)
		b.use()
		for range 3 { // as three calls may report the same
			b.Failed(errors.New("health check timed out"))
		}
		if n := b.use(); n != 2 {
			t.Errorf("instance %d", n)
		}
		if !b.things[0].stopped.Load() || b.things[0].graced.Load() {
			t.Error("the first instance was not killed at once")
		}
		if status := b.Status(); status.Restarts != 1 {
			t.Errorf("restarts %d", status.Restarts)
		}
	})
}
