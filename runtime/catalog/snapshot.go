package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Snapshot is every tool known at one time. It is immutable and safe for any number of readers.
type Snapshot struct {
	// Generation counts the changes of the tools since the daemon started.
	Generation uint64
	// Digest identifies the tools across restarts: two snapshots of the same tools have the same.
	Digest string

	parts      []part
	waiting    bool // for a built-in, see [Catalog.waiting]
	spaces     *namespaces
	entries    []*Entry // sorted by name
	collisions []Collision
	rejects    []Reject
	withheld   map[tool.Name][]withheld
	views      sync.Map // scope key -> *View
}

// Entries returns all tools, sorted by name. Callers must not change the slice.
func (s *Snapshot) Entries() []*Entry { return s.entries }

// Collisions returns the names that several tools claim, sorted by name.
func (s *Snapshot) Collisions() []Collision { return s.collisions }

// Rejects returns the definitions that could not be used, in the order of the providers.
func (s *Snapshot) Rejects() []Reject { return s.rejects }

// Providers returns the providers that the snapshot was made of, in the order of the configuration.
func (s *Snapshot) Providers() []provider.Provider {
	list := make([]provider.Provider, len(s.parts))
	for i := range s.parts {
		list[i] = s.parts[i].provider
	}
	return list
}

// Definitions returns all definitions, sorted by name, for checks of patterns against them.
func (s *Snapshot) Definitions() []*tool.Definition {
	list := make([]*tool.Definition, len(s.entries))
	for i, e := range s.entries {
		list[i] = e.Definition
	}
	return list
}

// Find returns the tool of exactly this name, whoever may use it.
func (s *Snapshot) Find(name tool.Name) (*Entry, bool) { return find(s.entries, name) }

func find(entries []*Entry, name tool.Name) (*Entry, bool) {
	i, ok := slices.BinarySearchFunc(entries, name, func(e *Entry, name tool.Name) int {
		return strings.Compare(e.Definition.Name, name)
	})
	if !ok {
		return nil, false
	}
	return entries[i], true
}

// build makes a snapshot of parts. What did not change since old is taken from there. While a built-in is waited for, other
// providers get no new name that it could have.
func build(old *Snapshot, parts []part, waiting bool) *Snapshot {
	s := &Snapshot{parts: parts, waiting: waiting, spaces: newNamespaces(parts), withheld: map[tool.Name][]withheld{}}
	builtin := builtinNames(parts)
	var claims []candidate
	for i := range parts {
		p := &parts[i]
		for j := range p.offer.Tools {
			c := candidate{p, &p.offer.Tools[j], len(claims)}
			known := old.has(c.definition)
			reason := s.taken(c, builtin)
			if reason == "" && !known {
				reason = unusable(c.definition)
			}
			switch {
			case reason != "":
				s.reject(c, reason)
			case known || !waiting || !c.contestable():
				claims = append(claims, c)
			}
		}
	}
	slices.SortFunc(claims, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.definition.Name, b.definition.Name), cmp.Compare(a.order, b.order))
	})
	for len(claims) > 0 {
		name := claims[0].definition.Name
		n := 1
		for n < len(claims) && claims[n].definition.Name == name {
			n++
		}
		winner, refused := settle(claims[:n])
		claims = claims[n:]
		if winner != nil {
			s.entries = append(s.entries, newEntry(old, *winner))
		}
		if len(refused) > 0 {
			x := Collision{Name: name}
			for _, c := range refused {
				x.Refused = append(x.Refused, c.origin())
			}
			if winner != nil {
				x.Kept = new(winner.origin())
			}
			s.collisions = append(s.collisions, x)
			if winner == nil {
				s.withhold(refused)
			}
		}
	}
	s.entries = slices.Clip(s.entries)
	s.Digest = s.digest()
	return s
}

func newEntry(old *Snapshot, c candidate) *Entry {
	e := &Entry{
		Definition: c.definition, Provider: c.part.provider, part: c.part,
		unmet: c.part.offer.Unmet[c.definition.Name], refused: c.part.offer.Refused[c.definition.Name],
	}
	if old.has(c.definition) {
		was, _ := old.Find(c.definition.Name)
		e.digest = was.digest
		e.tokens.Store(was.tokens.Load())
		return e
	}
	e.digest = digestOf(c.definition)
	return e
}

// has reports whether the snapshot holds this very definition, of which everything is known then.
func (s *Snapshot) has(d *tool.Definition) bool {
	if s == nil {
		return false
	}
	e, ok := s.Find(d.Name)
	return ok && e.Definition == d
}

func (s *Snapshot) digest() string {
	h := sha256.New()
	for _, e := range s.entries {
		h.Write(e.digest[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
