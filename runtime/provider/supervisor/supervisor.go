// Package supervisor keeps one instance of something that can die: it starts it when it is wanted, shares one start
// between all who wait, restarts it after a failure with growing pauses, stops it when idle, and gives up (quarantine)
// when it fails too often or cannot work.
//
// [Supervisor.Run] is a plain loop over the states of an instance's life, and the only place that changes the state.
// Everybody else leaves a wish under the mutex and wakes the loop.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
)

// Supervisor supervises one instance at a time. Make it with [New]; its methods may be called from any goroutine.
type Supervisor[I Instance] struct {
	opts  *Options
	start func(ctx context.Context) (I, error)
	wake  chan struct{} // capacity 1: the loop looks at the wishes again

	mu      sync.Mutex
	status  provider.Status
	changed chan struct{} // closed, and replaced, when the state or the instance changes
	retryAt time.Time     // in Backoff: when the next start is
	soonest time.Time     // in Backoff: when a call may have it, see Options.TryOnCall
	tries   int           // starts that were begun

	life *life[I] // the instance that may be acquired; nil if none

	// Wishes.
	waiters    int    // who want a start
	asked      int    // tries when the last of them came
	woken      bool   // a start is wanted until one has succeeded
	quarantine string // why no start may happen; "" if it may
	restart    bool   // replace the instance, for a reason that is no failure

	giveUp      context.CancelFunc // ends the start that runs
	interrupted bool               // a wish ended it

	// Failures.
	inARow int
	recent []time.Time // the last ones, as many as quarantine

	closing bool // the context of Run has ended
}

// usable says whether the instance may be given to further users. The mutex is held.
func (s *Supervisor[I]) usable() bool {
	if s.life == nil || s.life.fault != nil || s.restart || s.quarantine != "" || s.closing {
		return false
	}
	if s.outlived(s.life) { // else calls that follow each other closely would keep it for ever
		return false
	}
	select {
	case <-s.life.instance.Done():
		return false
	default:
		return true
	}
}

// life is one instance with those who use it.
type life[I Instance] struct {
	instance I
	born     time.Time
	users    int
	lastUse  time.Time
	proven   bool  // it has done real work
	fault    error // of its transport
}

// steady is the age from which an instance that did real work counts as one that had been well (without it, the longest
// backoff is): its failure is mended without a wait.
const steady = time.Second

// New makes a supervisor and starts nothing. start makes an instance that works; it must return soon after its context
// has ended, with everything that it began cleaned up.
func New[I Instance](start func(ctx context.Context) (I, error), opts *Options) (*Supervisor[I], error) {
	full, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if start == nil {
		return nil, errors.New("supervisor: no start function")
	}
	s := &Supervisor[I]{
		opts: full, start: start,
		wake: make(chan struct{}, 1), changed: make(chan struct{}),
		status: provider.Status{State: provider.Installed, Since: time.Now()},
	}
	return s, nil
}

// stopping is why an instance goes that no other follows.
const stopping = "the daemon is stopping"

// Run supervises until ctx ends, then stops the instance and returns nil. It is called once.
func (s *Supervisor[I]) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.close)() // who waits is told at once, not when everything is gone
	for s.awaitDemand(ctx) {
		s.oneLife(ctx)
	}
	s.close()
	s.enter(provider.Stopped, stopping)
	return nil
}

// close refuses everybody from now on.
func (s *Supervisor[I]) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	s.broadcast()
}

// awaitDemand returns true when a start is wanted and allowed, false when ctx has ended.
func (s *Supervisor[I]) awaitDemand(ctx context.Context) bool {
	for ctx.Err() == nil {
		s.mu.Lock()
		state, reason := s.status.State, s.status.Reason
		wanted := !s.opts.Lazy || s.waiters > 0 || s.woken || s.restart || s.opts.Wanted()
		switch {
		case s.quarantine != "":
			state, reason, wanted = provider.Quarantined, s.quarantine, false
		case !wanted && state != provider.Installed:
			state, reason = provider.Installed, s.lastFault()
		}
		s.mu.Unlock()
		if wanted {
			return true
		}
		s.enter(state, reason)
		select {
		case <-s.wake:
		case <-ctx.Done():
		}
	}
	return false
}

// lastFault is what an installed provider says about its last, failed instance. The mutex is held.
func (s *Supervisor[I]) lastFault() string {
	if s.inARow > 0 {
		return s.status.Reason
	}
	return ""
}

// oneLife starts an instance and returns when it is gone and the pause after it, if it failed, is over.
func (s *Supervisor[I]) oneLife(ctx context.Context) {
	s.enter(provider.Starting, "")
	inst, err := s.tryStart(ctx)
	if err != nil {
		s.afterFailedStart(ctx, err)
		return
	}
	now := time.Now()
	l := &life[I]{instance: inst, born: now, lastUse: now}
	s.mu.Lock()
	s.life, s.woken = l, false
	s.status.LastSuccess = now
	s.mu.Unlock()
	s.enter(provider.Ready, "")
	why, fault := s.attend(ctx, l)
	s.retire(ctx, l, why, fault)
	if fault != nil && ctx.Err() == nil {
		s.opts.Logger.Warn("provider failed", "error", fault)
		s.mu.Lock()
		s.status.Restarts++
		s.failure(fault)
		age := time.Since(l.born)
		well := l.proven && age >= steady || age >= s.opts.Backoff.Max
		s.mu.Unlock()
		s.pause(ctx, fault, well)
	}
}

// tryStart runs the start function within its time and the gate. A wish that makes the start pointless cancels it.
func (s *Supervisor[I]) tryStart(ctx context.Context) (inst I, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.tries++
	s.restart, s.interrupted, s.giveUp = false, false, cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.giveUp = nil
		s.mu.Unlock()
	}()
	if err := s.opts.Starts.enter(ctx); err != nil {
		return inst, err
	}
	defer s.opts.Starts.leave()
	ctx, stop := context.WithTimeout(ctx, s.opts.StartTimeout)
	defer stop()
	return s.start(ctx)
}

// attend returns when the instance has to go: the good reason for it, or how it failed.
func (s *Supervisor[I]) attend(ctx context.Context, l *life[I]) (why string, fault error) {
	for {
		s.mu.Lock()
		fault, restart, quarantine := l.fault, s.restart, s.quarantine
		due, next := s.due(l)
		if due != "" {
			s.life = nil // before anybody else begins to use it
		}
		s.mu.Unlock()
		switch {
		case fault != nil:
			return "", fault
		case quarantine != "":
			return quarantine, nil
		case restart:
			return "it is started anew, as the operator wants", nil
		case due != "":
			return due, nil
		}
		var timer *time.Timer
		var expired <-chan time.Time
		if next > 0 {
			timer = time.NewTimer(next)
			expired = timer.C
		}
		select {
		case <-l.instance.Done():
			return "", ending(l.instance)
		case <-ctx.Done():
			return stopping, nil
		case <-s.wake:
		case <-expired:
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// ending is why an instance that nobody stopped is gone.
func ending(inst Instance) error {
	if err := inst.Err(); err != nil {
		return err
	}
	return errors.New("it ended by itself")
}

// due says why the instance has to go, having been idle, or lived, for too long; else "" and when to look again (0: never).
// The mutex is held.
func (s *Supervisor[I]) due(l *life[I]) (why string, next time.Duration) {
	if idle := s.opts.IdleTimeout; idle > 0 && s.opts.Lazy {
		next = idle
		if s.opts.Wanted() {
			l.lastUse = time.Now()
		}
		if l.users == 0 {
			if next = idle - time.Since(l.lastUse); next <= 0 {
				return fmt.Sprintf("nobody has used it for %v; the next call starts it", idle), 0
			}
		}
	}
	if s.outlived(l) {
		return fmt.Sprintf("it has run for %v, the longest that it may; it is started anew", s.opts.MaxLifetime), 0
	}
	if life := s.opts.MaxLifetime; life > 0 {
		left := life - time.Since(l.born)
		if left <= 0 {
			left = time.Second // in use: look again soon
		}
		if next == 0 || left < next {
			next = left
		}
	}
	return "", next
}

// outlived reports whether an instance that nobody uses has reached the longest life that it may have. The mutex is held.
func (s *Supervisor[I]) outlived(l *life[I]) bool {
	return s.opts.MaxLifetime > 0 && l.users == 0 && time.Since(l.born) >= s.opts.MaxLifetime
}

// retire takes the instance away from new users, waits for the others unless it has failed, and stops it.
func (s *Supervisor[I]) retire(ctx context.Context, l *life[I], why string, fault error) {
	s.mu.Lock()
	s.life = nil
	quarantined := s.quarantine != ""
	s.mu.Unlock()
	ctx, cancel := s.grace(ctx)
	defer cancel()
	switch {
	case fault != nil:
		cancel() // nothing is to be hoped from its grace
		s.enter(provider.Backoff, fault.Error())
	case quarantined: // nobody is to wait for another
		s.enter(provider.Quarantined, why)
		s.awaitRelease(ctx, l)
	default:
		s.enter(provider.Draining, why)
		s.awaitRelease(ctx, l)
	}
	l.instance.Stop(ctx)
}

// grace is the time that an instance has to stop: the drain time-out, and no longer than the daemon itself has, which may
// begin to stop in the middle of it.
func (s *Supervisor[I]) grace(ctx context.Context) (context.Context, context.CancelFunc) {
	by := time.Now().Add(s.opts.DrainTimeout)
	if last, ok := provider.StopTime(ctx); ok && last.Before(by) {
		by = last
	}
	grace, cancel := context.WithDeadline(context.WithoutCancel(ctx), by)
	late := context.AfterFunc(ctx, func() {
		last, ok := provider.StopTime(ctx)
		if !ok || !last.Before(by) {
			return
		}
		timer := time.NewTimer(time.Until(last))
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-grace.Done():
		}
	})
	return grace, func() { late(); cancel() }
}

// awaitRelease returns when nobody uses the instance, it has ended, or ctx has.
func (s *Supervisor[I]) awaitRelease(ctx context.Context, l *life[I]) {
	for {
		s.mu.Lock()
		users := l.users
		s.mu.Unlock()
		if users == 0 {
			return
		}
		select {
		case <-s.wake:
		case <-l.instance.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}
