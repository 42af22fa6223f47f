package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	// DefaultWait is how long a call waits before it answers that its approval is pending: clients give up after 60 s.
	DefaultWait = 50 * time.Second
	// DefaultTimeout is how long a request stays open, and how long an answer can be used.
	DefaultTimeout = 5 * time.Minute
	// DefaultMaxOpen bounds the requests of one agent that are open at once.
	DefaultMaxOpen = 100
	// maxOpenOfAll bounds those of all agents.
	maxOpenOfAll = 10_000
	// progressEvery keeps clients patient that give up on silence.
	progressEvery = 10 * time.Second
	// storeWait bounds one write to the store.
	storeWait = 5 * time.Second
	// maxLost bounds the requests of a daemon before this one that are still shown.
	maxLost = 100
)

// Settings are what a new configuration may change while the broker runs.
type Settings struct {
	Mode Mode // "" is [Manual]
	// Wait is how long a call waits for its answer; 0 is [DefaultWait], negative is not at all.
	Wait time.Duration
	// Timeout is how long a request stays open; 0 is [DefaultTimeout].
	Timeout time.Duration
	// Policy is the version of the policy in force. When it changes, what was asked under another one is void.
	Policy string
	// Channels ask humans, besides the [Broker]'s own list that terminals and consoles watch.
	Channels []Channel
}

// Options configure a broker. The zero value works and keeps grants in memory.
type Options struct {
	Settings
	Store Store // nil: [NewMemory]
	Key   Key   // authenticates request states and links; see [LoadKey]
	// MaxOpen bounds the requests of one agent that are open at once; 0 is [DefaultMaxOpen].
	MaxOpen int
	// Mask hides secrets in what humans are shown: arguments, and why they are asked; nil hides nothing.
	Mask func(string) string
	// OnAsked and OnClosed hear of every request that is put to humans, and of its end, in this order. They must not block,
	// nor call the broker.
	OnAsked  func(*Pending)
	OnClosed func(*Closed)
	Logger   *slog.Logger // nil discards
}

// Broker asks humans. It may be used from any goroutine.
type Broker struct {
	options Options
	store   Store
	log     *slog.Logger
	ctx     context.Context // of everything that outlives one call
	cancel  context.CancelFunc
	asking  sync.WaitGroup

	mu       sync.Mutex
	settings Settings
	items    map[string]*item // open ones and settled ones that nobody has collected, by id
	byCall   map[sum][]*item  // the same by what they are bound to, oldest first
	tickets  map[ticketKey]*ticket
	grants   map[string]*Grant
	closed   map[string]string // how recent requests ended, for whoever answers too late
	order    []string          // their ids, oldest first
	lost     map[string]Pending
	watchers map[*watcher]struct{}
	done     bool
	later    []func() // what the holder of mu wants to be done when it is free
	queue    []func() // the same of all holders before, in order
	working  bool     // a goroutine works the queue off
}

// New makes a broker and reads its store. Requests that a daemon before this one left open are lost: they are shown for as
// long as they would have been open, and nobody can answer them.
func New(ctx context.Context, opts *Options) (*Broker, error) {
	b := &Broker{
		items: map[string]*item{}, byCall: map[sum][]*item{}, tickets: map[ticketKey]*ticket{}, grants: map[string]*Grant{},
		closed: map[string]string{}, lost: map[string]Pending{}, watchers: map[*watcher]struct{}{},
	}
	if opts != nil {
		b.options = *opts
	}
	b.options.MaxOpen = cmp.Or(b.options.MaxOpen, DefaultMaxOpen)
	if b.options.Mask == nil {
		b.options.Mask = func(s string) string { return s }
	}
	if b.log = b.options.Logger; b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.store = b.options.Store; b.store == nil {
		b.store = NewMemory()
	}
	var err error
	if b.settings, err = b.options.Settings.complete(); err != nil {
		return nil, err
	}
	if err := b.load(ctx); err != nil {
		return nil, err
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b, nil
}

func (s Settings) complete() (Settings, error) {
	s.Mode = cmp.Or(s.Mode, Manual)
	if !slices.Contains([]Mode{Manual, Off, DenyAll}, s.Mode) {
		return s, fmt.Errorf("approvals: there is no mode %q; use manual, off or deny", s.Mode)
	}
	if s.Timeout < 0 {
		return s, errors.New("approvals: the timeout is negative")
	}
	s.Wait, s.Timeout = cmp.Or(s.Wait, DefaultWait), cmp.Or(s.Timeout, DefaultTimeout)
	s.Channels = slices.Clone(s.Channels)
	return s, nil
}

func (b *Broker) load(ctx context.Context) error {
	grants, err := b.store.Grants(ctx)
	if err != nil {
		return err
	}
	for i := range grants {
		b.grants[grants[i].ID] = &grants[i]
	}
	left, err := b.store.Left(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(left, func(x, y Pending) int { return y.Expires.Compare(x.Expires) })
	for _, p := range left[:min(len(left), maxLost)] {
		p.Lost = true
		b.lost[p.ID] = p
	}
	return nil
}

// Apply takes over new settings. Requests that were asked under another policy are void at once.
func (b *Broker) Apply(s *Settings) error {
	next, err := s.complete()
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.unlock()
	b.settings = next
	for _, it := range b.items {
		if it.binding.Policy != next.Policy {
			b.close(it, tool.ApprovalVoid, Decision{Reason: "the policy has changed"})
			b.drop(it)
		}
	}
	return nil
}

// Close voids what is open and waits for the channels to end.
func (b *Broker) Close() {
	b.mu.Lock()
	b.done = true
	for _, it := range b.items {
		b.close(it, tool.ShuttingDown, Decision{Reason: "the daemon is stopping"})
		b.drop(it)
	}
	for w := range b.watchers {
		b.unwatch(w)
	}
	b.later = append(b.later, func() {}) // to wait for what others have queued
	b.unlock()
	b.cancel()
	b.asking.Wait()
}
