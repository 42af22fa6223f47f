package catalog

import (
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Libraries are the providers with resources and prompts that the view's agent may use as a whole, in the order of the
// configuration: some toolset grants the provider, not just single tools of it, and no exclusion takes it away. For
// exclusions its resources and prompts count as a tool of its own named "resources" (mcp__NAME__resources), and a
// provider of which every tool is excluded has neither.
func (v *View) Libraries() []provider.Library {
	var list []provider.Library
	for i := range v.snapshot.parts {
		p := &v.snapshot.parts[i]
		library, ok := p.provider.(provider.Library)
		if ok && p.closed != provider.Disabled && v.grantsLibrary(p) {
			list = append(list, library)
		}
	}
	return list
}

func (v *View) grantsLibrary(p *part) bool {
	id := p.identity
	if !v.scope.GrantsSource(id.Source, id.Name) {
		return false
	}
	whole := &tool.Definition{
		Name: tool.FullName(string(id.Source), id.Name, "resources"), OwnName: "resources", Source: id.Source, SourceName: id.Name, Coldness: tool.External,
	}
	if _, excluded := v.scope.Excluded(whole); excluded {
		return false
	}
	for i := range p.offer.Tools {
		if _, excluded := v.scope.Excluded(&p.offer.Tools[i]); !excluded {
			return true
		}
	}
	return len(p.offer.Tools) == 0
}
