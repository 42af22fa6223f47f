package policy

import (
	"slices"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Defer is the operator's wish about which tools are kept out of an agent's list. The zero value is the default: cold
// built-ins and everything external are deferred.
type Defer struct {
	// List are patterns of built-ins to defer. nil is the curated list (every cold built-in); a list replaces it; an empty
	// one keeps every tool eager.
	List *[]string
	// Pin are patterns of tools that are always eager, whatever else says.
	Pin []string
	// Toolsets lets "toolset:NAME" mean the operator's own toolsets too; nil knows the providers' only.
	Toolsets *Toolsets
}

// Deferred decides for one tool, in this order: a bridge tool never; pinned never; an empty list never; named by the list
// yes; of coldness core or cold no; of a provider that says defer = false no; external yes. providerDefer is what the
// provider's block says, nil if nothing.
func (p *Defer) Deferred(d *tool.Definition, providerDefer *bool) bool {
	switch {
	case IsReserved(d.Name), p.Pinned(d):
		return false
	case p.List != nil && len(*p.List) == 0:
		return false
	case p.listed(d):
		return true
	case d.Coldness == tool.Core, d.Coldness == tool.Cold:
		return false
	case providerDefer != nil && !*providerDefer:
		return false
	}
	return true
}

// Pinned reports whether d is always eager.
func (p *Defer) Pinned(d *tool.Definition) bool {
	return slices.ContainsFunc(p.Pin, func(pattern string) bool { return p.Toolsets.Match(pattern, d) })
}

func (p *Defer) listed(d *tool.Definition) bool {
	if p.List == nil {
		return curated(d)
	}
	return slices.ContainsFunc(*p.List, func(pattern string) bool { return p.Toolsets.Match(pattern, d) })
}

// curated is the whole curated list: what a built-in declares about itself. The host lowers cold to external for
// providers that are not trusted as built-ins, so that no third party can put itself here.
func curated(d *tool.Definition) bool { return d.Coldness == tool.Cold }

// IsReserved reports whether a name belongs to the bridge, so that no provider may have it.
func IsReserved(name tool.Name) bool {
	return name == tool.SearchName || name == tool.DescribeName || name == tool.CallName
}

// Unmatched is a pattern or name that no tool has: often a slip of the pen, sometimes a provider that is absent.
type Unmatched struct {
	Key     string // the key it stands in, "defer" or "pin"; "" if it stands elsewhere
	Pattern string
	Nearest string // the closest known name, "" if none is close
}

// Unmatched returns the patterns of the list and the pins that select none of the tools, for a warning.
func (p *Defer) Unmatched(tools []*tool.Definition) []Unmatched {
	var list []Unmatched
	check := func(key string, patterns []string) {
		for _, pattern := range patterns {
			if slices.ContainsFunc(tools, func(d *tool.Definition) bool { return p.Toolsets.Match(pattern, d) }) {
				continue
			}
			known := make(map[string]bool, len(tools))
			for _, d := range tools {
				known[d.Name] = true
				known[toolsetPrefix+ToolsetOf(d)] = true
			}
			list = append(list, Unmatched{key, pattern, nearestOf(pattern, known)})
		}
	}
	if p.List != nil {
		check("defer", *p.List)
	}
	check("pin", p.Pin)
	return list
}
