package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Scope is what one agent may use: what its toolsets bring in, less what is excluded for it, which is subtracted last
// whatever brought it in. It is immutable. A nil Scope grants everything and excludes nothing.
type Scope struct {
	all     bool
	granted []grant
	exclude []exclusion
	key     string
}

type grant struct {
	name   string // as the operator wrote it
	leaves []leaf
}

type exclusion struct {
	pattern string
	leaves  []leaf // of a toolset; nil for other patterns
}

// Scope resolves an agent's toolsets and exclusions. A nil granted is every toolset, an empty one is none. Exclusions are
// patterns, see [MatchPattern].
func (t *Toolsets) Scope(granted, exclude []string) *Scope {
	s := &Scope{all: granted == nil}
	for _, name := range granted {
		name = strings.TrimPrefix(name, toolsetPrefix)
		s.granted = append(s.granted, grant{name, t.expand(name)})
	}
	for _, pattern := range exclude {
		x := exclusion{pattern: pattern}
		if name, ok := strings.CutPrefix(pattern, toolsetPrefix); ok {
			x.leaves = t.expand(name)
		}
		s.exclude = append(s.exclude, x)
	}
	s.key = s.fingerprint()
	return s
}

// Granted reports whether some toolset brings d in.
func (s *Scope) Granted(d *tool.Definition) bool {
	if s == nil || s.all {
		return true
	}
	for i := range s.granted {
		if matchAny(s.granted[i].leaves, d) {
			return true
		}
	}
	return s.grantsOwn(d.Source, d.SourceName)
}

// OwnSource is the label of the daemon's own tools, without which agents could not use what the others return. They are
// granted to every agent that has any toolset.
const OwnSource = "hermesd"

func (s *Scope) grantsOwn(kind tool.Source, label string) bool {
	return len(s.granted) > 0 && kind == tool.SourceBuiltin && label == OwnSource
}

// Suppliers names the agent's toolsets that bring d in, as the operator wrote them; "*" when every toolset is granted.
func (s *Scope) Suppliers(d *tool.Definition) []string {
	if s == nil || s.all {
		return []string{Everything}
	}
	var names []string
	for i := range s.granted {
		if g := &s.granted[i]; matchAny(g.leaves, d) {
			names = append(names, g.name)
		}
	}
	return names
}

// Excluded reports whether d is subtracted, and the pattern that says so.
func (s *Scope) Excluded(d *tool.Definition) (by string, yes bool) {
	if s == nil {
		return "", false
	}
	for i := range s.exclude {
		x := &s.exclude[i]
		if x.leaves != nil && matchAny(x.leaves, d) || x.leaves == nil && MatchPattern(x.pattern, d) {
			return x.pattern, true
		}
	}
	return "", false
}

// GrantsSource reports whether tools of a provider would be granted although none is known yet, so that an agent can be
// told of a provider that has never started.
func (s *Scope) GrantsSource(kind tool.Source, label string) bool {
	if s == nil || s.all {
		return true
	}
	return s.grantsOwn(kind, label) || slices.ContainsFunc(s.granted, func(g grant) bool {
		return slices.ContainsFunc(g.leaves, func(l leaf) bool { return l.matchSource(kind, label) })
	})
}

// Key is the same for two scopes that grant and exclude the same, in every process.
func (s *Scope) Key() string {
	if s == nil {
		return everythingKey
	}
	return s.key
}

const everythingKey = "all"

func (s *Scope) fingerprint() string {
	if s.all && len(s.exclude) == 0 {
		return everythingKey
	}
	var lines []string
	for _, g := range s.granted {
		for _, l := range g.leaves {
			lines = append(lines, "+"+l.String())
		}
	}
	if s.all {
		lines = append(lines, "+"+Everything)
	}
	for _, x := range s.exclude {
		if x.leaves == nil {
			lines = append(lines, "-"+x.pattern)
		}
		for _, l := range x.leaves {
			lines = append(lines, "-"+toolsetPrefix+l.String())
		}
	}
	slices.Sort(lines)
	// The texts come from the configuration, so a separator that no label may hold is enough.
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(lines), "\n")))
	return hex.EncodeToString(sum[:8])
}
