package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
	"github.com/hermesd/hermesd/runtime/tool"
)

// shortLived is an instance that crashes and takes a while to be cleared away.
type shortLived struct{ done chan struct{} }

func (s *shortLived) Done() <-chan struct{} { return s.done }
func (s *shortLived) Err() error            { return errors.New("crashed") }
func (s *shortLived) Stop(context.Context)  { time.Sleep(100 * time.Millisecond) }

// How far away the next try is, is known only after that: who came before is told then, and does not wait for the try.
func TestWhoComesWhileACrashedInstanceIsClearedAwayIsToldHowLongItTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *supervisor.Supervisor[*shortLived]
		starts := 0
		clearing := make(chan struct{}) // the ninth has crashed
		s, err := supervisor.New(func(context.Context) (*shortLived, error) {
			starts++
			l := &shortLived{make(chan struct{})}
			time.AfterFunc(time.Second/2, func() { close(l.done) })
			return l, nil
		}, &supervisor.Options{Name: "p", NeverQuarantine: true, OnStatus: func(status provider.Status) {
			if status.State == provider.Backoff && starts == 9 {
				close(clearing)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		<-clearing
		began := time.Now()
		caller, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		_, _, err = s.Acquire(caller)
		wantCode(t, err, tool.ProviderStarting)
		if took := time.Since(began); took > time.Second {
			t.Errorf("told after %v", took)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
