package catalog

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Options configures a Catalog. nil is legal.
type Options struct {
	// Logger gets collisions and refused definitions; nil logs nothing.
	Logger *slog.Logger
	// OnChange is told of every new generation, one after the other, after it was published. It must not call SetProviders
	// or Refresh.
	OnChange func(*Snapshot)
}

// Catalog holds the snapshot of the current generation.
type Catalog struct {
	logger   *slog.Logger
	onChange func(*Snapshot)
	current  atomic.Pointer[Snapshot]

	mu        sync.Mutex // held while a snapshot is built; readers never take it
	providers []provider.Provider
	heard     map[provider.Provider]bool // the built-ins that told their tools, or failed to
}

// New returns a catalog without providers.
func New(opts *Options) *Catalog {
	if opts == nil {
		opts = &Options{}
	}
	c := &Catalog{logger: opts.Logger, onChange: opts.OnChange, heard: map[provider.Provider]bool{}}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	c.current.Store(build(nil, nil, false))
	return c
}

// Snapshot returns the current generation.
func (c *Catalog) Snapshot() *Snapshot { return c.current.Load() }

// SetProviders replaces the whole list, which is in the order of the configuration.
func (c *Catalog) SetProviders(list []provider.Provider) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.providers = slices.Clone(list)
	maps.DeleteFunc(c.heard, func(p provider.Provider, _ bool) bool { return !slices.Contains(list, p) })
	c.refresh()
}

// Refresh reads what the providers offer, after one of them said that something changed. It is cheap when nothing but a
// provider's status did.
func (c *Catalog) Refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
}

func (c *Catalog) refresh() {
	old := c.current.Load()
	parts := make([]part, len(c.providers))
	for i, p := range c.providers {
		parts[i] = newPart(p)
	}
	waiting := c.waiting(parts)
	if old.waiting == waiting && slices.EqualFunc(old.parts, parts, part.identical) {
		return
	}
	// A provider that listed its tools again holds them at new addresses. The new snapshot refers to those, so that the old
	// ones can go; but as long as they say the same it is the same generation, and nobody needs to hear of it.
	next := build(old, parts, waiting)
	if old.waiting == waiting && slices.EqualFunc(old.parts, parts, part.equal) {
		next.Generation = old.Generation
		c.current.Store(next)
		return
	}
	next.Generation = old.Generation + 1
	c.current.Store(next)
	c.report(old, next)
	if c.onChange != nil {
		c.onChange(next)
	}
}

// waiting reports whether the tools of a configured built-in are still to be heard of, so that nobody else can be given
// a name that may be one of theirs. A built-in that failed once is not waited for again.
func (c *Catalog) waiting(parts []part) bool {
	waiting := false
	for _, x := range parts {
		if x.identity.Source != tool.SourceBuiltin || c.heard[x.provider] {
			continue
		}
		switch s := x.offer.Status.State; {
		case x.offer.Tools != nil, s == provider.Ready, s == provider.Backoff, s == provider.Quarantined, s == provider.Disabled:
			c.heard[x.provider] = true
		default:
			waiting = true
		}
	}
	return waiting
}

// report logs what is refused now and was not before.
func (c *Catalog) report(old, next *Snapshot) {
	for _, x := range next.collisions {
		if !slices.ContainsFunc(old.collisions, x.equal) {
			c.logger.Warn("tools refused: one name, several origins", "tool", x.Name, "refused", x.Refused, "kept", x.Kept, "help", x.Help())
		}
	}
	for _, r := range next.rejects {
		if !slices.Contains(old.rejects, r) {
			c.logger.Warn("tool refused", "provider", r.Origin.String(), "tool", r.Name, "reason", r.Reason)
		}
	}
}
