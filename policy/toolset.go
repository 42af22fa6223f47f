package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/runtime/tool"
)

// CoreToolset is the toolset of every tool of coldness core.
const CoreToolset = "core"

// Everything is the toolset of all tools.
const Everything = "*"

// Toolsets resolves toolset names to what they consist of. It is the only resolver: grants, exclusions and displays agree
// because they all ask it. The zero value and nil know the built-in and the providers' toolsets only.
type Toolsets struct {
	leaves map[string][]leaf // of every composed toolset, resolved
}

// NewToolsets takes the operator's toolset blocks: label to included names. An included name is another block, a toolset
// that a provider's tools declare, "core", "*", or KIND:LABEL for all tools of one provider ("mcp:github", "mcp:*",
// "plugin:weather"). Includes resolve recursively, and a cycle ends where it would repeat itself. A block that includes
// its own label means the providers' toolset of that name.
func NewToolsets(blocks map[string][]string) (*Toolsets, error) {
	for label, include := range blocks {
		switch {
		case label == CoreToolset, label == "":
			return nil, fmt.Errorf("toolset %q: the name is taken; choose another label", label)
		case strings.ContainsAny(label, `:*?[]\ `):
			return nil, fmt.Errorf("toolset %q: a label holds no spaces, colons or glob characters", label)
		}
		for _, name := range include {
			if err := CheckPattern(name); err != nil || name == "" {
				return nil, fmt.Errorf("toolset %q includes %q: write a toolset, core, * or KIND:LABEL", label, name)
			}
		}
	}
	t := &Toolsets{leaves: make(map[string][]leaf, len(blocks))}
	for label := range blocks {
		t.leaves[label] = resolve(blocks, label)
	}
	return t, nil
}

func resolve(blocks map[string][]string, label string) []leaf {
	var leaves []leaf
	seen := map[string]bool{}
	var walk func(label string)
	walk = func(label string) {
		seen[label] = true
		for _, name := range blocks[label] {
			name = strings.TrimPrefix(name, toolsetPrefix)
			if _, composed := blocks[name]; composed && name != label {
				if !seen[name] {
					walk(name)
				}
				continue
			}
			if l := newLeaf(name); !slices.Contains(leaves, l) {
				leaves = append(leaves, l)
			}
		}
	}
	walk(label)
	return leaves
}

// Match is [MatchPattern] with the operator's own toolsets known.
func (t *Toolsets) Match(pattern string, d *tool.Definition) bool {
	if name, ok := strings.CutPrefix(pattern, toolsetPrefix); ok {
		return matchAny(t.expand(name), d)
	}
	if kind, ok := strings.CutPrefix(pattern, sourcePrefix); ok {
		return glob(kind, string(d.Source))
	}
	return glob(pattern, d.Name)
}

// Unknown returns the names that select nothing: no block of the operator's, no reserved word, no source label and no
// toolset of any of the tools. Each comes with the nearest known name. Providers that have not started yet may still
// bring one, so this is for diagnostics, not for refusing a grant.
func (t *Toolsets) Unknown(names []string, tools []*tool.Definition) []Unmatched {
	known := map[string]bool{CoreToolset: true}
	if t != nil {
		for label := range t.leaves {
			known[label] = true
		}
	}
	for _, d := range tools {
		known[ToolsetOf(d)] = true
		known[string(d.Source)+":"+d.SourceName] = true
	}
	var list []Unmatched
	for _, name := range names {
		bare := strings.TrimPrefix(name, toolsetPrefix)
		if known[bare] || isGlob(bare) {
			continue
		}
		list = append(list, Unmatched{Pattern: name, Nearest: nearestOf(bare, known)})
	}
	return list
}

func (t *Toolsets) expand(name string) []leaf {
	if t != nil {
		if leaves, ok := t.leaves[name]; ok {
			return leaves
		}
	}
	return []leaf{newLeaf(name)}
}

// leaf is what a resolved toolset consists of: all tools of matching providers, or of matching toolsets.
type leaf struct {
	kind tool.Source // "" selects by toolset
	name string      // a glob over the source's label, or over the toolset
}

func newLeaf(name string) leaf {
	if kind, label, ok := strings.Cut(name, ":"); ok && isSource(kind) {
		return leaf{tool.Source(kind), label}
	}
	return leaf{name: strings.TrimPrefix(name, toolsetPrefix)}
}

func (l leaf) match(d *tool.Definition) bool {
	switch {
	case l.kind != "":
		return d.Source == l.kind && glob(l.name, d.SourceName)
	case l.name == Everything:
		return true
	case l.name == CoreToolset:
		return d.Coldness == tool.Core
	}
	return glob(l.name, ToolsetOf(d))
}

// matchSource reports whether the leaf would grant tools of a provider of which no tool is known yet.
func (l leaf) matchSource(kind tool.Source, label string) bool {
	if l.kind != "" {
		return kind == l.kind && glob(l.name, label)
	}
	return l.name != CoreToolset && glob(l.name, label)
}

func (l leaf) String() string {
	if l.kind != "" {
		return string(l.kind) + ":" + l.name
	}
	return l.name
}

func matchAny(leaves []leaf, d *tool.Definition) bool {
	for _, l := range leaves {
		if l.match(d) {
			return true
		}
	}
	return false
}
