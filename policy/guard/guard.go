// Package guard bounds what one agent may do: calls a minute, calls at once, and calls that fail again and again.
//
// The loop guard counts failing calls in each session. It warns an agent that repeats a call which failed before, and in
// the end refuses the call, so that a model which cannot find its mistake does not spend its whole budget on it.
package guard

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Limits bound one agent. In every field 0 means no limit.
type Limits struct {
	// CallsPerMinute bounds the rate: so many at once after a pause, and so many a minute in the long run.
	CallsPerMinute int
	// ConcurrentCalls bounds the calls that are under way at once.
	ConcurrentCalls int
	// SameCallWarn and SameCallBlock say at which failing call with the same tool and arguments the agent is warned, and
	// which one is refused.
	SameCallWarn, SameCallBlock int
	// SameToolWarn and SameToolBlock say the same of failing calls of one tool, whatever the arguments.
	SameToolWarn, SameToolBlock int
}

// Defaults are the limits of an agent of which the configuration says nothing.
func Defaults() Limits {
	return Limits{ConcurrentCalls: 256, SameCallWarn: 2, SameCallBlock: 5, SameToolWarn: 3, SameToolBlock: 8}
}

const (
	// DefaultForget is after how long without a further failure a session's count of failures starts again.
	DefaultForget = 10 * time.Minute
	// DefaultSessions is how many sessions' counts are kept.
	DefaultSessions = 10_000
)

// Options configure a guard. The zero value works.
type Options struct {
	// Limits tells an agent's limits, which may change while the guard runs; nil is [Defaults] for all.
	Limits func(agent string) Limits
	// Forget is after how long without a further failure a count starts again, so that a session that lasts for days does
	// not lose a tool for good; 0 is [DefaultForget].
	Forget time.Duration
	// Sessions bounds the sessions whose failures are counted, the last used ones; 0 is [DefaultSessions].
	Sessions int
}

// Guard may be used from any goroutine.
type Guard struct {
	limits func(agent string) Limits

	mu     sync.Mutex
	agents map[string]*load
	loops  loops
}

// load is what one agent does right now.
type load struct {
	running int
	tokens  float64
	filled  time.Time // when tokens was right; zero: never filled
}

// New makes a guard.
func New(opts *Options) (*Guard, error) {
	if opts == nil {
		opts = &Options{}
	}
	if opts.Forget < 0 || opts.Sessions < 0 {
		return nil, errors.New("guard: forget and sessions must not be negative")
	}
	g := &Guard{limits: opts.Limits, agents: map[string]*load{}}
	if g.limits == nil {
		g.limits = func(string) Limits { return Defaults() }
	}
	g.loops.init(opts.Sessions, opts.Forget)
	return g, nil
}

// Admit lets a call in or refuses it. Whoever is let in calls leave once when the call is over, however it ended.
func (g *Guard) Admit(c *Call) (leave func(), err *tool.Error) {
	limits := g.limits(c.Agent)
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if err := g.loops.admit(c, &limits, now); err != nil {
		return nil, err
	}
	l := g.agents[c.Agent]
	if l == nil {
		l = &load{}
		g.agents[c.Agent] = l
	}
	if n := limits.ConcurrentCalls; n > 0 && l.running >= n {
		return nil, tool.Errorf(tool.RateLimited, "%s was not run: %d calls of this agent are under way, the most that the operator allows; wait until one has ended", c.Tool, l.running)
	}
	if wait := l.take(limits.CallsPerMinute, now); wait > 0 {
		return nil, tool.Errorf(tool.RateLimited, "%s was not run: the operator allows %d calls a minute; try again in %s", c.Tool, limits.CallsPerMinute, wait.Round(10*time.Millisecond)).
			With("retry_after_ms", int64(math.Ceil(float64(wait)/float64(time.Millisecond))))
	}
	l.running++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if l.running--; l.running == 0 && g.limits(c.Agent).CallsPerMinute == 0 {
			delete(g.agents, c.Agent)
		}
	}), nil
}

// take takes one token of a bucket that holds perMinute and is filled at that rate. It returns how long to wait for one.
func (l *load) take(perMinute int, now time.Time) time.Duration {
	if perMinute <= 0 {
		return 0
	}
	full := float64(perMinute)
	if l.filled.IsZero() {
		l.tokens = full
	} else {
		l.tokens = min(full, l.tokens+now.Sub(l.filled).Minutes()*full)
	}
	l.filled = now
	if l.tokens < 1 {
		return time.Duration(math.Ceil((1 - l.tokens) / full * float64(time.Minute)))
	}
	l.tokens--
	return 0
}
