package supervisor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
)

// stubborn is an instance that ends only when its grace has.
type stubborn struct{ done chan struct{} }

func (s *stubborn) Done() <-chan struct{} { return s.done }
func (s *stubborn) Err() error            { return nil }
func (s *stubborn) PID() int              { return 1 }
func (s *stubborn) Stop(ctx context.Context) {
	<-ctx.Done()
	close(s.done)
}

func TestAStopTakesNoLongerThanTheDaemonHas(t *testing.T) {
	for name, tt := range map[string]struct {
		left    time.Duration // what the daemon has; 0: it does not say
		restart bool          // a stop for another reason is under way for a second
		want    time.Duration
	}{
		"nothing hurries":                        {0, false, 5 * time.Second},
		"the daemon has more time than it needs": {time.Minute, false, 5 * time.Second},
		"the daemon has less":                    {2 * time.Second, false, 2 * time.Second},
		"it was being stopped already":           {2 * time.Second, true, 2 * time.Second},
		"and would have been gone earlier":       {time.Minute, true, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := supervisor.New(func(context.Context) (*stubborn, error) {
					return &stubborn{make(chan struct{})}, nil
				}, &supervisor.Options{Name: "p", DrainTimeout: 5 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				ended := make(chan error)
				go func() { ended <- s.Run(ctx) }()
				synctest.Wait()
				if tt.restart {
					s.Restart()
					time.Sleep(time.Second)
				}
				begun := time.Now()
				if tt.left > 0 {
					cancel(provider.StopBy(begun.Add(tt.left)))
				} else {
					cancel(nil)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took != tt.want {
					t.Errorf("took %v, want %v", took, tt.want)
				}
			})
		})
	}
}
