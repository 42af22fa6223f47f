package supervisor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
)

// Instance is one run of what is supervised: a process with its connection. It may have a method PID() int.
type Instance interface {
	// Done is closed when the instance can no longer be used, whoever ended it.
	Done() <-chan struct{}
	// Err says why; it is valid after Done.
	Err() error
	// Stop ends the instance and returns when everything of it is gone. After ctx's end it no longer waits for grace.
	Stop(ctx context.Context)
}

// Permanent is an error of a start that trying again cannot mend, such as a configuration that the plugin refuses: it
// quarantines at once.
type Permanent struct{ Err error }

func (p Permanent) Error() string { return p.Err.Error() }

// Unwrap gives the reason.
func (p Permanent) Unwrap() error { return p.Err }

// Backoff says how long to wait after failures, and how many are too many.
type Backoff struct {
	Min      time.Duration // the first wait; default 200 ms. It doubles with every further failure in a row
	Max      time.Duration // the longest wait; default 30 s
	Failures int           // this many within Window quarantine; default 5
	Window   time.Duration // default 10 min
}

// wait is how long to wait after the n-th failure in a row (from 1), a quarter more or less so that many providers that
// failed together do not come back together.
func (b *Backoff) wait(n int) time.Duration {
	d := b.Min << min(n-1, 30)
	if d > b.Max || d <= 0 {
		d = b.Max
	}
	return d*3/4 + rand.N(d/2+1)
}

// Options configure a [Supervisor].
type Options struct {
	Name string // the provider's, for messages; required
	// Lazy starts only when somebody acquires. Otherwise an instance runs as long as Run does.
	Lazy bool
	// IdleTimeout stops a lazy instance that nobody has used for this long; 0 never does.
	IdleTimeout time.Duration
	// Wanted reports whether a lazy instance has to run though nobody acquires it, because it is to tell of something: it is
	// not stopped when idle, and started anew when it ended. It must return at once and not call the supervisor; nil: never.
	Wanted func() bool
	// StartTimeout bounds one start; default 10 s.
	StartTimeout time.Duration
	// MaxLifetime replaces an instance of this age as soon as nobody uses it; 0 never does.
	MaxLifetime time.Duration
	// DrainTimeout is how long users may take to release an instance that is to be stopped; default 5 s.
	DrainTimeout time.Duration
	// Starts bounds the starts at once over all providers that share it; nil does not.
	Starts  *Gate
	Backoff Backoff
	// NeverQuarantine keeps trying however often it failed; only [Permanent] errors and [Supervisor.Quarantine] end that.
	NeverQuarantine bool
	// TryOnCall lets who acquires have a try a second after the last failure (later, if Backoff.Min is longer), however far
	// away the next one is: for what costs nothing to try, such as a server elsewhere that may be back. All who wait share
	// it, and who came before it failed is told then.
	TryOnCall bool
	// Mask hides secrets in the reason of a state, which may quote what the instance said; nil hides none.
	Mask   func(string) string
	Logger *slog.Logger // should name the provider; nil discards
	// OnStatus is told every change of state, one after the other. It must not block.
	OnStatus func(provider.Status)
}

func (o *Options) withDefaults() (*Options, error) {
	if o == nil || o.Name == "" {
		return nil, errors.New("supervisor: no name")
	}
	full := *o
	full.StartTimeout = cmp.Or(full.StartTimeout, 10*time.Second)
	full.DrainTimeout = cmp.Or(full.DrainTimeout, 5*time.Second)
	full.Backoff.Min = cmp.Or(full.Backoff.Min, 200*time.Millisecond)
	full.Backoff.Max = cmp.Or(full.Backoff.Max, 30*time.Second)
	full.Backoff.Window = cmp.Or(full.Backoff.Window, 10*time.Minute)
	full.Backoff.Failures = cmp.Or(full.Backoff.Failures, 5)
	if full.Wanted == nil {
		full.Wanted = func() bool { return false }
	}
	if full.Mask == nil {
		full.Mask = func(s string) string { return s }
	}
	if full.Logger == nil {
		full.Logger = slog.New(slog.DiscardHandler)
	}
	if full.OnStatus == nil {
		full.OnStatus = func(provider.Status) {}
	}
	return &full, nil
}

// Gate bounds how many starts happen at once.
type Gate struct{ slots chan struct{} }

// NewGate makes a gate for n starts at once; n below 1 counts as 1.
func NewGate(n int) *Gate { return &Gate{slots: make(chan struct{}, max(n, 1))} }

// enter waits for a place. A nil Gate has room for everybody.
func (g *Gate) enter(ctx context.Context) error {
	if g == nil {
		return nil
	}
	select {
	case g.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *Gate) leave() {
	if g != nil {
		<-g.slots
	}
}
