package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
)

func (s *Supervisor[I]) afterFailedStart(ctx context.Context, err error) {
	s.mu.Lock()
	interrupted := s.interrupted
	s.mu.Unlock()
	if ctx.Err() != nil || interrupted {
		return
	}
	s.opts.Logger.Warn("provider did not start", "error", err)
	s.Faltered(err)
	if p := (Permanent{}); errors.As(err, &p) {
		s.Quarantine(err.Error())
		return
	}
	s.pause(ctx, err, false)
}

// pause counts a failure and waits before the next start, or quarantines. An instance that had been well is replaced
// without a wait.
func (s *Supervisor[I]) pause(ctx context.Context, fault error, well bool) {
	now := time.Now()
	limits := &s.opts.Backoff
	s.mu.Lock()
	if well {
		s.inARow = 0
	}
	s.inARow++
	if s.recent = append(s.recent, now); len(s.recent) > limits.Failures {
		s.recent = s.recent[1:]
	}
	tooMany := len(s.recent) == limits.Failures && now.Sub(s.recent[0]) <= limits.Window
	wait := limits.wait(s.inARow)
	if well {
		wait = 0
	}
	s.retryAt, s.soonest = now.Add(wait), now.Add(max(limits.Min, callPause))
	s.broadcast() // who came while the instance was cleared away, in the same state, does not know yet how long it takes
	s.mu.Unlock()
	if tooMany && !s.opts.NeverQuarantine {
		s.Quarantine(fmt.Sprintf("it failed %d times within %v, the last time: %v", limits.Failures, limits.Window, fault))
		return
	}
	s.enter(provider.Backoff, fault.Error())
	for s.paused(ctx) {
	}
}

// callPause is the least time between a failure and the try that a call makes.
const callPause = time.Second

// paused waits for the next try, and reports whether to look again at when that is.
func (s *Supervisor[I]) paused(ctx context.Context) bool {
	s.mu.Lock()
	next := s.retryAt
	if s.waiters > 0 {
		next = s.next(s.asked)
	}
	over := s.quarantine != "" || s.restart
	s.mu.Unlock()
	if over {
		return false
	}
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	case <-s.wake:
		return true
	}
}
