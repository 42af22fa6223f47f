// Package learning remembers which tools agents called after which searches, so that a tool that helped ranks higher for
// similar queries of the same agent.
//
// A Recorder sees every search and every call that succeeded, but never what a call returned. What it learns it keeps in
// the state database, bounded for each agent, and forgets as it ages. Neither a search nor a call waits for the database.
package learning

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/hermesd/hermesd/search"
)

// The bounds of what is kept.
const (
	maxSame    = 8                         // lessons of one agent that say the same
	maxAge     = 6 * search.LessonHalfLife // after which a lesson counts nearly nothing
	maxPending = 1000                      // lessons that wait to be written; more are dropped
	renewal    = time.Hour                 // how often lessons are weighed anew, by their age
	maxLessons = search.MaxLessons         // of one agent
)

// Database is where lessons are kept; *store.Writer is one.
type Database interface {
	Write(ctx context.Context, fn func(ctx context.Context, c *sql.Conn) error) error
	Read() *sql.DB
}

// Options configure a Recorder. Database and Terms are required.
type Options struct {
	Database Database
	// Terms are what a lesson keeps of a query; search.Engine has them.
	Terms func(query string) []string
	// Agents are those that learn. What others did is neither recorded nor used.
	Agents []string
	Logger *slog.Logger // nil discards
}

// Recorder learns. It may be used from any goroutine.
type Recorder struct {
	options Options
	log     *slog.Logger
	agents  map[string]*pupil

	writing sync.Mutex // held while lessons are changed and read again

	mu       sync.Mutex // guards what follows
	sessions map[string]*session
	pending  []taught
	wake     chan struct{}
}

// pupil is an agent that learns.
type pupil struct {
	lessons atomic.Pointer[search.Lessons]
}

// taught is a lesson that is not written yet.
type taught struct {
	agent string
	search.Lesson
}

// New reads what was learned before.
func New(ctx context.Context, opts *Options) (*Recorder, error) {
	r := &Recorder{
		options: *opts, log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)),
		agents: map[string]*pupil{}, sessions: map[string]*session{}, wake: make(chan struct{}, 1),
	}
	for _, name := range opts.Agents {
		r.agents[name] = &pupil{}
		if err := r.load(ctx, name); err != nil {
			return nil, fmt.Errorf("what was learned of agent %q: %w", name, err)
		}
	}
	return r, nil
}

// Usage returns what an agent learned about tools for queries like this one, for search.Query.Usage; nil if nothing.
func (r *Recorder) Usage(agent, query string) func(name string) float64 {
	p, ok := r.agents[agent]
	if !ok {
		return nil
	}
	return p.lessons.Load().Usage(r.options.Terms(query))
}

// Run writes lessons until ctx ends, and those that wait then.
func (r *Recorder) Run(ctx context.Context) error {
	if len(r.agents) == 0 {
		return nil
	}
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			r.write(context.WithoutCancel(ctx))
			return nil
		case <-r.wake:
			r.write(context.WithoutCancel(ctx)) // what was taken from the pending ones is not lost at the end
		case <-tick.C:
			r.renew(ctx)
		}
	}
}

// write writes the lessons that wait.
func (r *Recorder) write(ctx context.Context) {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	lessons := r.pending
	r.pending = nil
	r.mu.Unlock()
	if len(lessons) == 0 {
		return
	}
	if err := r.insert(ctx, lessons); err != nil {
		r.log.Error("lessons of tool searches are lost", "lessons", len(lessons), "error", err)
		return
	}
	changed := map[string]bool{}
	for _, l := range lessons {
		if !changed[l.agent] {
			changed[l.agent] = true
			r.reload(ctx, l.agent)
		}
	}
}

// renew weighs all lessons by the age that they have now.
func (r *Recorder) renew(ctx context.Context) {
	r.writing.Lock()
	defer r.writing.Unlock()
	for name := range r.agents {
		r.reload(ctx, name)
	}
}

func (r *Recorder) reload(ctx context.Context, agent string) {
	if err := r.load(ctx, agent); err != nil {
		r.log.Error("lessons of tool searches cannot be read", "agent", agent, "error", err)
	}
}

// Forget deletes what an agent learned about a tool and returns how many lessons that were; "" is every agent, or every
// tool.
func (r *Recorder) Forget(ctx context.Context, agent string, name tool.Name) (int, error) {
	r.write(ctx) // what waits is forgotten too
	r.writing.Lock()
	defer r.writing.Unlock()
	n, err := r.remove(ctx, agent, name)
	if err != nil {
		return 0, fmt.Errorf("forget lessons: %w", err)
	}
	for known := range r.agents {
		if agent == "" || agent == known {
			if err := r.load(ctx, known); err != nil {
				return n, fmt.Errorf("read lessons: %w", err)
			}
		}
	}
	return n, nil
}
