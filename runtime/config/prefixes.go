package config

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/hermesd/hermesd/runtime/tool"
)

// toolSpace is a beginning of tool names that belongs to one block.
type toolSpace struct {
	block   string // `mcp_server "github"`
	pos     Position
	label   hcl.Range
	prefix  string // without the separator
	written bool   // by the operator; else it comes of the label
}

// gatewayPrefix begins the names of the connector gateway's tools.
const gatewayPrefix = "connectors"

// checkPrefixes refuses a prefix that would give a provider names that are another one's. Case, hyphens and, after "mcp", the
// number of underscores make no difference: agents confuse them, so the daemon forgives them.
func (l *loader) checkPrefixes() {
	spaces := l.toolSpaces()
	for i, s := range spaces {
		if !s.written {
			continue
		}
		if s.within(toolSpace{prefix: gatewayPrefix}) {
			l.fault(s.label, fmt.Sprintf("Prefix %q is taken", s.prefix), "Names that begin with it belong to the connector gateway. Write another prefix.")
			continue
		}
		for j, other := range spaces {
			if s.block == other.block || other.written && j > i && other.within(s) && s.within(other) { // said there
				continue
			}
			if s.within(other) || !other.written && flattened(s.prefix) == flattened(other.prefix) {
				l.fault(s.label, fmt.Sprintf("Prefix %q is another provider's", s.prefix), fmt.Sprintf(
					"Tools whose names begin with %s__ are those of %s at %s. Write another prefix for one of them.", other.prefix, other.block, other.pos))
				break
			}
		}
	}
}

// toolSpaces are those of the blocks that are switched on.
func (l *loader) toolSpaces() []toolSpace {
	var list []toolSpace
	for i := range l.cfg.Plugins {
		if p := &l.cfg.Plugins[i]; p.Enabled && p.Prefix.Text != "" {
			list = append(list, toolSpace{fmt.Sprintf("plugin %q", p.Name), p.Pos, l.labels["plugin"][i], p.Prefix.Text, true})
		}
	}
	for i := range l.cfg.MCPServers {
		m := &l.cfg.MCPServers[i]
		if !m.Enabled {
			continue
		}
		s := toolSpace{fmt.Sprintf("mcp_server %q", m.Name), m.Pos, l.labels["mcp_server"][i], "mcp__" + m.Name, false}
		list = append(list, s)
		if m.Prefix.Text != "" && m.Prefix.Text != s.prefix {
			s.prefix, s.written = m.Prefix.Text, true
			list = append(list, s)
		}
	}
	return list
}

// within reports whether the names of s are some of other's.
func (s toolSpace) within(other toolSpace) bool {
	return strings.HasPrefix(tool.Fold(s.prefix)+"__", tool.Fold(other.prefix)+"__")
}

// flattened is a prefix as models may write it.
func flattened(prefix string) string {
	return strings.Trim(tool.Flatten(tool.Fold(prefix)), "_")
}
