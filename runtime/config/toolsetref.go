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

// checkToolsets reports the names that no provider can supply: unknown forms, providers and so on. Plain names may be a
// plugin's own; whether any provider brought them is known only when all have been heard.
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
		case kind != "mcp" && kind != "plugin":
			l.fault(ref.at, fmt.Sprintf("Unknown toolset %q", ref.name), `Write a toolset's name, "core", "mcp:NAME", "mcp:*", "plugin:NAME" or "*".`)
		case name != "*" && !slices.Contains(known[kind], name):
			l.fault(ref.at, fmt.Sprintf("Unknown toolset %q", ref.name), fmt.Sprintf("There is no %s named %q. %s", map[string]string{"mcp": "mcp_server", "plugin": "plugin"}[kind], name, suggestion(name, known[kind])))
		}
	}
}

// Mask hides every secret of the configuration in a text.
func (c *Config) Mask(text string) string { return c.masker.Mask(text) }
