package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"github.com/hermesd/hermesd/policy"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// View is what one agent may see of a snapshot. It is immutable.
type View struct {
	snapshot *Snapshot
	scope    *policy.Scope
	key      string

	granted []*Entry // everything that a toolset brings in, usable or not
	listed  []*Entry // of these, what an agent's list and listing hold
	ranked  []*Entry // of these, what a search ranks

	fold    sync.Once
	folded  map[string][]*Entry // granted tools by folded name
	flatMCP map[string][]*Entry // granted MCP tools by name with single underscores
}

// View returns what a scope lets through, made once for each scope of a generation.
func (s *Snapshot) View(scope *policy.Scope) *View {
	if v, ok := s.views.Load(scope.Key()); ok {
		return v.(*View)
	}
	v, _ := s.views.LoadOrStore(scope.Key(), newView(s, scope))
	return v.(*View)
}

func newView(s *Snapshot, scope *policy.Scope) *View {
	v := &View{snapshot: s, scope: scope, key: fmt.Sprintf("%d/%s", s.Generation, scope.Key())}
	v.granted = filter(s.entries, func(e *Entry) bool { return scope.Granted(e.Definition) })
	v.listed = filter(v.granted, func(e *Entry) bool {
		_, excluded := scope.Excluded(e.Definition)
		return !excluded && e.unmet == "" && e.refused == "" && e.part.closed != provider.Disabled
	})
	v.ranked = filter(v.listed, func(e *Entry) bool { return e.part.closed == "" })
	return v
}

// filter returns the entries that keep accepts; the same slice if it accepts all, as in most views.
func filter(entries []*Entry, keep func(*Entry) bool) []*Entry {
	first := slices.IndexFunc(entries, func(e *Entry) bool { return !keep(e) })
	if first < 0 {
		return entries
	}
	kept := slices.Clone(entries[:first])
	for _, e := range entries[first+1:] {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	return slices.Clip(kept)
}

// Only returns the part of v that keep accepts. Names outside it are like unknown ones there.
func (v *View) Only(keep func(*Entry) bool) *View {
	w := &View{snapshot: v.snapshot, scope: v.scope, granted: filter(v.granted, keep), listed: filter(v.listed, keep), ranked: filter(v.ranked, keep)}
	if len(w.granted) == len(v.granted) {
		return v
	}
	h := sha256.New()
	for _, e := range w.ranked {
		writeField(h, e.Definition.Name)
	}
	w.key = v.key + "/" + hex.EncodeToString(h.Sum(nil)[:8])
	return w
}

// Snapshot is the snapshot that the view is of.
func (v *View) Snapshot() *Snapshot { return v.snapshot }

// Key identifies the generation and what the view lets through.
func (v *View) Key() string { return v.key }

// Entries returns what a search ranks: granted, not excluded, with its precondition met, not quarantined; sorted by name.
// A tool whose provider is merely down is among them. Callers must not change the slice.
func (v *View) Entries() []*Entry { return v.ranked }

// Entry returns the tool of exactly this name among Entries.
func (v *View) Entry(name tool.Name) (*Entry, bool) { return find(v.ranked, name) }

// Listed returns what an agent's list and listing are made of: Entries, and the tools of providers that are quarantined.
// A provider that crashes once too often waits for its operator, but its lines stay, so that the agent's prompt stays the
// same; search, describe and call tell what is wrong.
func (v *View) Listed() []*Entry { return v.listed }

// Source is one provider as an agent sees it.
type Source struct {
	Name  string // the block's label
	Kind  tool.Source
	Tools int // how many of its tools the view ranks
	// Unavailable is why its tools cannot be had right now; "" if they can.
	Unavailable string
}

// Sources returns the providers of the view's tools, sorted by label, with their status of this moment; among them those
// that would be granted but have not brought a tool yet, so that nobody takes them for absent.
func (v *View) Sources() []Source {
	counts := make(map[provider.Provider]int, len(v.snapshot.parts))
	for _, e := range v.ranked {
		counts[e.Provider]++
	}
	var list []Source
	for i := range v.snapshot.parts {
		p := &v.snapshot.parts[i]
		n := counts[p.provider]
		status := p.provider.Offer().Status
		reason := availability(status).Reason
		if n == 0 {
			if status.State == provider.Starting {
				reason = "it is starting"
			}
			refused := p.refusedWhole(v.snapshot)
			if reason == "" && refused {
				reason = "all its tools are refused, because their names or definitions cannot be used; calling one says why"
			}
			if reason == "" || status.State == provider.Disabled || len(p.offer.Tools) > 0 && !refused || !v.scope.GrantsSource(p.identity.Source, p.identity.Name) {
				continue
			}
		}
		list = append(list, Source{p.identity.Name, p.identity.Source, n, reason})
	}
	slices.SortStableFunc(list, func(a, b Source) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}
