package supervisor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// patience is how far away the next try may be for a caller to wait for it rather than to be told.
const patience = 5 * time.Second

// Acquire returns the running instance, after a start that it shares with all others who wait: also the one that follows
// an instance which is being stopped to make room for another. release must be called when the use ends. The error is a
// *tool.Error: [tool.ProviderStarting] if ctx ended first or the next try is too far away, [tool.ProviderQuarantined],
// [tool.ShuttingDown], or [tool.Cancelled].
func (s *Supervisor[I]) Acquire(ctx context.Context) (inst I, release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	came, waiting, hurried := s.tries, false, false
	for {
		if s.usable() {
			l := s.life
			l.users++
			l.lastUse = time.Now()
			return l.instance, sync.OnceFunc(func() { s.release(l) }), nil
		}
		if err := s.refusal(ctx, came); err != nil {
			return inst, nil, err
		}
		if !hurried && s.far() { // the try is made for this caller, who had else been told at once
			hurried = true
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, patience)
			defer cancel()
		}
		if !waiting {
			waiting = true
			s.waiters++
			s.asked = came
			defer func() { s.waiters-- }()
			s.poke()
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
}

func (s *Supervisor[I]) release(l *life[I]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.users--
	l.lastUse = time.Now()
	if l.users == 0 && s.life != l {
		s.poke() // it is waited for
	}
}

// refusal is why waiting is of no use to who came after that many tries, or nil. The mutex is held.
func (s *Supervisor[I]) refusal(ctx context.Context, came int) error {
	name := s.opts.Name
	switch {
	case s.closing:
		return tool.Errorf(tool.ShuttingDown, "hermesd is stopping; the call was not sent")
	case s.quarantine != "":
		return tool.Errorf(tool.ProviderQuarantined, "provider %q is quarantined: %s; do not retry, tell the operator", name, s.quarantine)
	case errors.Is(ctx.Err(), context.Canceled):
		return tool.Errorf(tool.Cancelled, "the call was cancelled while provider %q was starting; it was not sent", name)
	case ctx.Err() != nil:
		return tool.Errorf(tool.ProviderStarting, "provider %q is not ready yet%s; the call was not sent, try again in a few seconds", name, because(s.trouble()))
	case s.status.State == provider.Backoff:
		next := s.next(came)
		wait := time.Until(next)
		if end, ok := ctx.Deadline(); wait > patience || ok && next.After(end) {
			sooner := ""
			if s.opts.TryOnCall {
				sooner = " or for a later call"
			}
			return tool.Errorf(tool.ProviderStarting, "provider %q failed%s; it is started again in %v%s, the call was not sent",
				name, because(s.status.Reason), max(wait, 0).Round(time.Second/10), sooner)
		}
	}
	return nil
}

// far reports whether the next try is further away than a caller waits for. The mutex is held.
func (s *Supervisor[I]) far() bool {
	return s.status.State == provider.Backoff && time.Until(s.retryAt) > patience
}

// next is when the next try is, in Backoff, for who came after that many. The mutex is held.
func (s *Supervisor[I]) next(came int) time.Time {
	if s.opts.TryOnCall && came == s.tries && s.soonest.Before(s.retryAt) {
		return s.soonest
	}
	return s.retryAt
}

// trouble is why the instance is not ready: the reason of the state, or what came before it. The mutex is held.
func (s *Supervisor[I]) trouble() string {
	if s.status.Reason == "" && s.inARow > 0 {
		return s.status.Failure
	}
	return s.status.Reason
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// Status returns the present state.
func (s *Supervisor[I]) Status() provider.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Succeeded notes that an exchange with the running instance worked.
func (s *Supervisor[I]) Succeeded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.LastSuccess = time.Now()
	if s.life != nil {
		s.life.proven = true
	}
}

// Faltered notes an exchange that failed although the instance may be well: it ran out of time, for example.
func (s *Supervisor[I]) Faltered(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure(err)
}

// failure notes what went wrong last. The mutex is held.
func (s *Supervisor[I]) failure(err error) {
	s.status.LastFailure, s.status.Failure = time.Now(), s.opts.Mask(err.Error())
}

// Failed notes a fault of the running instance's transport: the instance is replaced, and the fault counts. It is meant
// for an instance whose Done is still open; one that has ended is noticed without it.
func (s *Supervisor[I]) Failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != nil && s.life.fault == nil {
		s.life.fault = err
		s.failure(err)
		s.poke()
	}
}

// Quarantine stops the instance and refuses to start another until [Supervisor.Restart].
func (s *Supervisor[I]) Quarantine(reason string) {
	s.opts.Logger.Error("provider is quarantined: it starts again when it is told to restart", "reason", reason)
	s.wish(func() { s.quarantine = reason })
}

// Wake starts a lazy provider that nobody has acquired, and keeps trying until it has been ready once.
func (s *Supervisor[I]) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == nil {
		s.woken = true
		s.poke()
	}
}

// Restart ends a quarantine, forgets earlier failures, and starts the instance anew, once those who use it are done.
func (s *Supervisor[I]) Restart() {
	s.wish(func() {
		s.quarantine, s.restart = "", true
		s.inARow, s.recent = 0, nil
	})
}

// wish changes what is wanted. A start that runs meanwhile is given up, and those who wait look again.
func (s *Supervisor[I]) wish(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	if s.giveUp != nil {
		s.interrupted = true
		s.giveUp()
	}
	s.broadcast()
	s.poke()
}

// poke makes the loop look again. The mutex is held, so that no wish is overlooked.
func (s *Supervisor[I]) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Supervisor[I]) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// enter changes the state, tells those who wait, and reports it. Only the loop calls it.
func (s *Supervisor[I]) enter(state provider.State, reason string) {
	reason = s.opts.Mask(reason)
	s.mu.Lock()
	if s.status.State == state && s.status.Reason == reason {
		s.mu.Unlock()
		return
	}
	s.status.State, s.status.Reason, s.status.Since = state, reason, time.Now()
	s.status.PID = 0
	if s.life != nil {
		if with, ok := any(s.life.instance).(interface{ PID() int }); ok {
			s.status.PID = with.PID()
		}
	}
	status := s.status
	s.broadcast()
	s.mu.Unlock()
	s.opts.OnStatus(status)
}
