package supervisor_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
)

func TestHealthIsTheLastExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, supervisor.Options{}, nil)
		steps := []struct {
			what    string
			do      func()
			healthy bool
			failure string
		}{
			{"before the first start has ended", func() {}, false, ""},
			{"after a start", func() { time.Sleep(2 * time.Second) }, true, ""},
			{"after a call that ran out of time", func() { b.Faltered(errors.New("too slow")) }, false, "too slow"},
			{"after a call that worked", func() { time.Sleep(time.Nanosecond); b.Succeeded() }, true, "too slow"},
			{"after a crash", func() { time.Sleep(time.Nanosecond); b.things[0].die(errors.New("killed")); synctest.Wait() }, false, "killed"},
			{"after the restart", func() { time.Sleep(2 * time.Second) }, true, "killed"},
			{"after a broken connection", func() { time.Sleep(time.Nanosecond); b.Failed(errors.New("broken pipe")) }, false, "broken pipe"},
		}
		for _, s := range steps {
			s.do()
			status := b.Status()
			if status.Healthy() != s.healthy || status.Failure != s.failure || (s.failure == "") != status.LastFailure.IsZero() {
				t.Errorf("%s: %+v", s.what, status)
			}
		}
		b.stop()
		if status := b.Status(); status.Healthy() || status.State != provider.Stopped {
			t.Errorf("stopped: %+v", status)
		}
	})
}
