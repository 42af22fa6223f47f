package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	separator = "__" // between a prefix and the provider's own name
	// spaceRoom is the longest part of a prefix that every name below it has: longer names end in a hash, see [tool.FullName].
	spaceRoom = tool.MaxName - len("_01234567")
	// uriScheme begins the URIs of servers' resources, with the block's label as their host.
	uriScheme = "mcp://"
)

// namespaces say whose the names below a prefix are: those of the block that has it by its configuration, whatever others
// offer. Names are compared without what models mix up by accident (see [View.Find]), so that no lookalike is found in the
// place of an owner's tool.
type namespaces struct {
	owners map[string][]*part // by folded prefix with its separator: "mcp__github__"
	flat   map[string]*part   // by the same with single underscores, for MCP servers: "mcp_github_"
	labels map[string]*part   // of MCP servers
}

func newNamespaces(parts []part) *namespaces {
	s := &namespaces{owners: map[string][]*part{}, flat: map[string]*part{}, labels: map[string]*part{}}
	for i := range parts {
		p := &parts[i]
		if p.space != "" {
			s.own(p.space, p)
		}
		if p.identity.Source == tool.SourceMCP { // rules and exclusions mean the server by these names, whatever its prefix is
			space := mcpPrefix + p.identity.Name + separator
			s.own(space, p)
			s.flat[tool.Flatten(tool.Fold(space))] = p
			s.labels[p.identity.Name] = p
		}
	}
	return s
}

func (s *namespaces) own(space string, p *part) {
	key := tool.Fold(space)
	key = key[:min(len(key), spaceRoom)]
	if !slices.Contains(s.owners[key], p) {
		s.owners[key] = append(s.owners[key], p)
	}
}

// foreign returns the provider in whose namespace a name of p's lies, or nil. Where one namespace is part of another, names
// in it belong to the narrower one.
func (s *namespaces) foreign(p *part, name tool.Name) *part {
	if p.plainly(name) {
		return nil
	}
	key := tool.Fold(name)
	for end := len(key); end > 0; end-- {
		if end != spaceRoom && !strings.HasSuffix(key[:end], separator) {
			continue
		}
		if owners := s.owners[key[:end]]; len(owners) > 0 {
			if slices.Contains(owners, p) {
				return nil
			}
			return owners[0]
		}
	}
	flat := tool.Flatten(key)
	for end := len(flat); end > 0; end-- {
		if flat[end-1] != '_' {
			continue
		}
		if owner := s.flat[flat[:end]]; owner == p {
			return nil
		} else if owner != nil {
			return owner
		}
	}
	return nil
}

// plainly reports whether a name is p's and can be in no narrower namespace, as nearly all names are.
func (p *part) plainly(name tool.Name) bool {
	own, ok := strings.CutPrefix(name, p.space)
	if !ok || p.space == "" || len(name) >= spaceRoom {
		return false
	}
	for i := range len(own) {
		if (own[i] == '_' || own[i] == '-') && (i == 0 || own[i-1] == '_' || own[i-1] == '-') {
			return false
		}
	}
	return true
}

// foreignURI is foreign for the URI of a resource.
func (s *namespaces) foreignURI(p *part, uri string) *part {
	if len(uri) < len(uriScheme) || !strings.EqualFold(uri[:len(uriScheme)], uriScheme) {
		return nil
	}
	label, _, _ := strings.Cut(uri[len(uriScheme):], "/")
	if owner := s.labels[strings.ToLower(label)]; owner != p {
		return owner
	}
	return nil
}

// Trespass says why a prompt's name or a resource's URI (or template) cannot be the library's: it lies in the namespace of
// another provider. "" if it can.
func (s *Snapshot) Trespass(l provider.Library, name string) string {
	i := slices.IndexFunc(s.parts, func(p part) bool { return p.provider == l })
	if i < 0 {
		return ""
	}
	p := &s.parts[i]
	owner := s.spaces.foreign(p, name)
	if owner == nil {
		owner = s.spaces.foreignURI(p, name)
	}
	if owner == nil {
		return ""
	}
	return trespass(owner)
}

func trespass(owner *part) string {
	return fmt.Sprintf("its name is one of those that belong to %s", owner)
}

func (p *part) String() string { return fmt.Sprintf("%s %q", p.identity.Source, p.identity.Name) }
