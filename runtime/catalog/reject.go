package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Reject is a definition that is refused alone, whatever else there is.
type Reject struct {
	Name   tool.Name
	Origin Origin
	Reason string
}

// withheld is a tool that a provider offers and nobody can have.
type withheld struct {
	definition *tool.Definition
	origin     Origin
	reason     string // "" for a name that several claim
}

func (s *Snapshot) reject(c candidate, reason string) {
	s.rejects = append(s.rejects, Reject{c.definition.Name, c.origin(), reason})
	name := c.definition.Name
	s.withheld[name] = append(s.withheld[name], withheld{c.definition, c.origin(), reason})
}

func (s *Snapshot) withhold(claims []candidate) {
	for _, c := range claims {
		name := c.definition.Name
		s.withheld[name] = append(s.withheld[name], withheld{definition: c.definition, origin: c.origin()})
	}
}

// Refusals returns why tools that a provider offers are not to be had by their names, for its operator.
func (s *Snapshot) Refusals(p provider.Provider) map[tool.Name]string {
	id := p.Identity()
	list := map[tool.Name]string{}
	its := func(o Origin) bool { return o.Provider == id.Name && o.Source == id.Source }
	for _, r := range s.rejects {
		if its(r.Origin) {
			list[r.Name] = r.Reason
		}
	}
	for _, x := range s.collisions {
		for _, o := range x.Refused {
			if its(o) {
				list[x.Name] = x.reason(o)
			}
		}
	}
	return list
}

// reason is why one of the origins does not have the name.
func (x Collision) reason(of Origin) string {
	others := "it offers several tools of this name"
	if x.Kept != nil {
		others = fmt.Sprintf("the name is that of %s", x.Kept)
	} else {
		for _, o := range x.Refused {
			if o.Provider != of.Provider || o.Source != of.Source {
				others = fmt.Sprintf("%s has a tool of this name, too", o)
				break
			}
		}
	}
	return others + "; " + x.Help()
}

// builtinNames are the names of the built-ins that are switched on, by what is left of them without differences that models
// make by accident.
func builtinNames(parts []part) map[string]tool.Name {
	names := map[string]tool.Name{}
	for i := range parts {
		if p := &parts[i]; p.identity.Source == tool.SourceBuiltin && p.closed != provider.Disabled {
			for j := range p.offer.Tools {
				names[tool.Fold(p.offer.Tools[j].Name)] = p.offer.Tools[j].Name
			}
		}
	}
	return names
}

// taken returns why a third party cannot have a name that nobody else need offer: it is one of another's namespace, or would
// be taken for a built-in's. "" if it can.
func (s *Snapshot) taken(c candidate, builtin map[string]tool.Name) string {
	if c.builtin() {
		return ""
	}
	if owner := s.spaces.foreign(c.part, c.definition.Name); owner != nil {
		return trespass(owner) + "; write prefix = true in this provider's block, or exclude the tool there"
	}
	if name, alike := builtin[tool.Fold(c.definition.Name)]; alike && name != c.definition.Name && !c.part.identity.Override {
		return fmt.Sprintf("it would be taken for the built-in %s; write prefix = true in this provider's block, or exclude the tool there", name)
	}
	return ""
}

// connectorPrefix begins the names of the connector gateway's tools, by which batches are routed.
const connectorPrefix = "connectors__"

// mcpPrefix begins the names of an MCP server's tools.
const mcpPrefix = "mcp__"

// unusable returns why a definition cannot stand in any catalog, or "".
func unusable(d *tool.Definition) string {
	switch {
	case !tool.ValidName(d.Name):
		return fmt.Sprintf("the name %.80q is not 1 to %d characters of A-Z, a-z, 0-9, _ and -", d.Name, tool.MaxName)
	case reserved(d.Name):
		return "the name belongs to the bridge; give the tool another one, or write prefix = true in the provider's block"
	case strings.HasPrefix(tool.Fold(d.Name), connectorPrefix) && d.Source != tool.SourceConnectors:
		return "names that begin with connectors__ belong to the connector gateway; give the tool another one"
	}
	return unusableSchema(d.InputSchema)
}

// reserved reports whether a call of the name would reach the bridge.
func reserved(name tool.Name) bool {
	_, yes := BridgeNames{}.Kind(name)
	return yes
}

// refusedWhole reports whether p offers tools and none of them is anybody's.
func (p *part) refusedWhole(s *Snapshot) bool {
	return len(p.offer.Tools) > 0 && !slices.ContainsFunc(p.offer.Tools, func(d tool.Definition) bool { return !s.withholds(p, d.Name) })
}

func (s *Snapshot) withholds(p *part, name tool.Name) bool {
	return slices.ContainsFunc(s.withheld[name], func(w withheld) bool {
		return w.origin.Provider == p.identity.Name && w.origin.Source == p.identity.Source
	})
}
