package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/policy"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	maxGiven       = 256 // bytes of a name that are looked at; no full name is longer than tool.MaxName
	maxSuggestions = 3
	maxSpread      = 2 // edits beyond the nearest: beside a slip of one letter, nothing far away was meant
)

// Find returns the tool that an agent means by name: the exact name; else the only one whose name differs in case,
// hyphens and spaces; else the only MCP tool whose name differs in the number of underscores (mcp_github_create_issue).
//
// The error is a *[tool.Error]: ProviderQuarantined for a tool that was granted and is refused until the operator accepts
// it, NotAvailable for one that was granted and cannot be used here for another reason (its name is refused, too), both with
// the reason, and UnknownTool for everything else, with near names under "did_you_mean". A tool that was never granted is
// like one that does not exist.
func (v *View) Find(name string) (*Entry, error) {
	e, ok := find(v.granted, name)
	if !ok {
		if err := v.withheld(name); err != nil {
			return nil, err
		}
		e, ok = v.findFolded(name)
	}
	if !ok {
		return nil, v.unknown(name)
	}
	if code, reason := v.unusable(e); reason != "" {
		return nil, tool.Errorf(code, "%s is not available here, because %s; do not retry", e.Definition.Name, reason)
	}
	return e, nil
}

// Resolve is [View.Find] for those who run the tool.
func (v *View) Resolve(name tool.Name) (*provider.Binding, error) {
	e, err := v.Find(name)
	if err != nil {
		return nil, err
	}
	return &provider.Binding{Definition: e.Definition, Provider: e.Provider}, nil
}

func (v *View) usable(e *Entry) bool {
	_, reason := v.unusable(e)
	return reason == ""
}

// unusable returns by which code and why a granted tool cannot be used, for as long as the operator does nothing about it; ""
// if it can. A provider that is down is no such reason: the call itself finds out.
func (v *View) unusable(e *Entry) (code tool.Code, reason string) {
	if _, usable := find(v.listed, e.Definition.Name); !usable {
		if by, yes := v.scope.Excluded(e.Definition); yes {
			return tool.NotAvailable, fmt.Sprintf("the operator excludes %s for this agent", by)
		}
	}
	switch s := e.State(); s.Condition {
	case Available, Unavailable:
		return "", ""
	case Quarantined:
		return tool.ProviderQuarantined, s.Reason
	default:
		return tool.NotAvailable, s.Reason
	}
}

// withheld says why a tool of exactly this name, that would be granted, is refused by its name or its definition. nil if there
// is none.
func (v *View) withheld(name string) error {
	var reason string
	var claim []string
	for _, w := range v.snapshot.withheld[name] {
		if !v.scope.Granted(w.definition) {
			continue
		}
		if w.reason != "" {
			reason = fmt.Sprintf("the tool of that name of %s is refused: %s", w.origin, w.reason)
		} else if origin := w.origin.String(); !slices.Contains(claim, origin) {
			claim = append(claim, origin)
		}
	}
	switch {
	case len(claim) > 0:
		reason = fmt.Sprintf("several tools claim that name (%s among them) and it is nobody's until the operator renames or excludes one", strings.Join(claim, " and "))
	case reason == "":
		return nil
	}
	return tool.Errorf(tool.NotAvailable, "%s is not available here, because %s; do not retry: search for another tool, or tell the user", name, reason)
}

func (v *View) unknown(name string) *tool.Error {
	near := v.Nearest(name, maxSuggestions)
	if len(near) == 0 {
		return tool.Errorf(tool.UnknownTool, "there is no tool named %q; search for what you need before you say that it is missing", clip(name))
	}
	return tool.Errorf(tool.UnknownTool, "there is no tool named %q; did you mean %s?", clip(name), strings.Join(near, ", ")).
		With("did_you_mean", near)
}

// Nearest returns at most n names of usable tools that an agent may have meant: full names that end in "__" and the given
// name, then the nearest by edit distance, of the full and of the own name.
func (v *View) Nearest(name string, n int) []tool.Name {
	if len(name) > maxGiven {
		return nil
	}
	given := tool.Fold(name)
	if given == "" {
		return nil
	}
	type candidate struct {
		entry    *Entry
		distance int // -1: ends in the given name
	}
	var near []candidate
	limit := max(1, len(given)/3)
	for key, entries := range v.foldedIndex() {
		d := -1
		if !strings.HasSuffix(key, "__"+given) {
			own := key[strings.LastIndex(key, "__")+1:]
			d = min(policy.Distance(given, key, limit), policy.Distance(given, strings.TrimPrefix(own, "_"), limit))
		}
		if d > limit {
			continue
		}
		limit = min(limit, max(d, 0)+maxSpread)
		for _, e := range entries {
			near = append(near, candidate{e, d})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.entry.Definition.Name, b.entry.Definition.Name))
	})
	var names []tool.Name
	for _, c := range near {
		if len(names) == n || c.distance > max(near[0].distance, 0)+maxSpread {
			break
		}
		if v.usable(c.entry) {
			names = append(names, c.entry.Definition.Name)
		}
	}
	return names
}

func (v *View) findFolded(name string) (*Entry, bool) {
	if len(name) > maxGiven {
		return nil, false
	}
	key := tool.Fold(name)
	if e, ok := v.only(v.foldedIndex()[key]); ok {
		return e, true
	}
	return v.only(v.flatMCP[tool.Flatten(key)])
}

// only returns the single entry that can be meant: the only usable one, else the only one at all.
func (v *View) only(list []*Entry) (*Entry, bool) {
	if len(list) == 1 {
		return list[0], true
	}
	usable := slices.DeleteFunc(slices.Clone(list), func(e *Entry) bool { return !v.usable(e) })
	if len(usable) == 1 {
		return usable[0], true
	}
	return nil, false
}

// foldedIndex is made when the first inexact name comes: most agents never send one.
func (v *View) foldedIndex() map[string][]*Entry {
	v.fold.Do(func() {
		v.folded = make(map[string][]*Entry, len(v.granted))
		v.flatMCP = map[string][]*Entry{}
		for _, e := range v.granted {
			key := tool.Fold(e.Definition.Name)
			v.folded[key] = append(v.folded[key], e)
			if e.Definition.Source == tool.SourceMCP {
				flat := tool.Flatten(key)
				v.flatMCP[flat] = append(v.flatMCP[flat], e)
			}
		}
	})
	return v.folded
}

func clip(name string) string {
	if len(name) <= maxGiven {
		return name
	}
	return strings.ToValidUTF8(name[:maxGiven], "") + "…"
}
