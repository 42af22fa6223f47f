package disclosure

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hermesd/hermesd/policy"
	"github.com/hermesd/hermesd/runtime/catalog"
)

// Agent is a configured principal, as far as its tools are concerned. It is not changed after it was first used; a change
// of its configuration, or of its toolsets at run time, makes a new one.
type Agent struct {
	Name string
	// Scope is what it may use; nil is everything.
	Scope    *policy.Scope
	Settings Settings
	// Attended says that a human can be asked while it works.
	Attended bool
	// Connectors says that it can reach hosted connectors, so that it needs the bridge even if nothing local is deferred.
	Connectors bool
}

// Disclosure keeps the current assembly of every agent.
type Disclosure struct {
	catalog *catalog.Catalog
	agents  sync.Map // agent's name -> *slot
}

type slot struct {
	current atomic.Pointer[Assembly]
	mu      sync.Mutex // held while an assembly is made, so that it is made once
}

// New returns a Disclosure of a catalog.
func New(c *catalog.Catalog) *Disclosure { return &Disclosure{catalog: c} }

// For returns what an agent sees of the current generation.
func (d *Disclosure) For(a *Agent) *Assembly {
	kept, ok := d.agents.Load(a.Name)
	if !ok {
		kept, _ = d.agents.LoadOrStore(a.Name, &slot{})
	}
	s := kept.(*slot)
	if now := s.current.Load(); now.of(a, d.catalog.Snapshot()) {
		return now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	snapshot := d.catalog.Snapshot()
	if now := s.current.Load(); now.of(a, snapshot) {
		return now
	}
	made := assemble(a, snapshot)
	s.current.Store(made)
	d.release(snapshot)
	return made
}

// release lets go of what was made of earlier snapshots, so that an agent that says nothing more does not keep an old
// generation of definitions in memory.
func (d *Disclosure) release(now *catalog.Snapshot) {
	d.agents.Range(func(_, kept any) bool {
		s := kept.(*slot)
		if made := s.current.Load(); made != nil && made.View.Snapshot() != now {
			s.current.CompareAndSwap(made, nil)
		}
		return true
	})
}

// of reports whether the assembly is that of an agent and a snapshot.
func (a *Assembly) of(agent *Agent, s *catalog.Snapshot) bool {
	return a != nil && a.agent == agent && a.View.Snapshot() == s
}

// Warnings returns what an operator should know about an agent's settings, one sentence each: patterns that select
// nothing, and tools that a renamed bridge tool hides.
func Warnings(a *Agent, s *catalog.Snapshot) []string {
	var list []string
	for _, u := range a.Settings.Defer.Unmatched(s.Definitions()) {
		text := fmt.Sprintf("%s: no tool matches %q; its provider may be absent", u.Key, u.Pattern)
		if u.Nearest != "" {
			text += fmt.Sprintf(", or %q was meant", u.Nearest)
		}
		list = append(list, text)
	}
	names := a.Settings.Names.OrDefault()
	for _, e := range s.Entries() {
		if _, hidden := names.Kind(e.Definition.Name); hidden {
			list = append(list, fmt.Sprintf("names: the bridge tool %q hides the tool of that name from %s", e.Definition.Name, e.Identity().Name))
		}
	}
	return list
}
