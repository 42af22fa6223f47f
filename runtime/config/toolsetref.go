package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// toolsetRef is a toolset's name where an agent or a toolset uses it.
type toolsetRef struct {
	name string
	at   hcl.Range
}

// checkToolsets reports the names that no provider can supply: unknown forms, providers and so on. Plain names that are not
// toolset blocks are kept for [Config.CheckToolsets], since they may be a plugin's own.
func (l *loader) checkToolsets() {
	known := map[string][]string{}
	for _, p := range l.cfg.Plugins {
		known["plugin"] = append(known["plugin"], p.Name)
	}
	for _, m := range l.cfg.MCPServers {
		known["mcp"] = append(known["mcp"], m.Name)
	}
	for i, t := range l.cfg.Toolsets {
		if t.Name == "core" {
			l.fault(l.labels["toolset"][i], `Toolset "core" is taken`, "It is the toolset of every tool of coldness core.")
		}
	}
	for _, ref := range l.refs {
		kind, name, prefixed := strings.Cut(ref.name, ":")
		switch {
		case !prefixed:
			if ref.name != "*" && ref.name != "core" && !l.isToolset(ref.name) {
				l.cfg.toolsetRefs = append(l.cfg.toolsetRefs, ref)
			}
		case kind != "mcp" && kind != "plugin":
			l.fault(ref.at, fmt.Sprintf("Unknown toolset %q", ref.name), `Write a toolset's name, "core", "mcp:NAME", "mcp:*", "plugin:NAME" or "*".`)
		case name != "*" && !slices.Contains(known[kind], name):
			l.fault(ref.at, fmt.Sprintf("Unknown toolset %q", ref.name), fmt.Sprintf("There is no %s named %q. %s", map[string]string{"mcp": "mcp_server", "plugin": "plugin"}[kind], name, suggestion(name, known[kind])))
		}
	}
}

func (l *loader) isToolset(name string) bool {
	return slices.ContainsFunc(l.cfg.Toolsets, func(t Toolset) bool { return t.Name == name })
}

// CheckToolsets reports the toolset names of agents and toolsets that are neither blocks of the configuration nor among
// known, the toolsets that providers brought. Call it once all providers have been heard: one that is down may own a name.
func (c *Config) CheckToolsets(known []string) Diagnostics {
	names := slices.Clone(known)
	for _, t := range c.Toolsets {
		names = append(names, t.Name)
	}
	var raw hcl.Diagnostics
	for _, ref := range c.toolsetRefs {
		if slices.Contains(known, ref.name) {
			continue
		}
		raw = raw.Append(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: fmt.Sprintf("Unknown toolset %q", ref.name), Subject: ref.at.Ptr(),
			Detail: "No toolset block and no provider has it. " + suggestion(ref.name, names),
		})
	}
	return newDiagnostics(raw, c.files, c.Files, c.Mask)
}

// Mask hides every secret of the configuration in a text.
func (c *Config) Mask(text string) string { return c.masker.Mask(text) }
