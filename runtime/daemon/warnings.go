package daemon

import (
	"fmt"

	"github.com/hermesd/hermesd/policy"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/disclosure"
)

// warnings are what an operator should know about the configuration now that the providers have told their tools: names
// and patterns that select nothing, and tools that are hidden.
func (d *Daemon) warnings() []string {
	snapshot := d.catalog.Snapshot()
	tools := snapshot.Definitions()
	var list []string
	tell := func(where string, unknown []policy.Unmatched) {
		for _, u := range unknown {
			text := fmt.Sprintf("%s: no provider brings the toolset %q; its provider may be absent", where, u.Pattern)
			if u.Nearest != "" {
				text += fmt.Sprintf(", or %q was meant", u.Nearest)
			}
			list = append(list, text)
		}
	}
	for i := range d.cfg.Agents {
		a := &d.cfg.Agents[i]
		tell(fmt.Sprintf("%s: agent %q", a.Pos, a.Name), d.agents.toolsets.Unknown(granted(a), tools))
	}
	for i := range d.cfg.Toolsets {
		t := &d.cfg.Toolsets[i]
		tell(fmt.Sprintf("%s: toolset %q", t.Pos, t.Name), d.agents.toolsets.Unknown(t.Include, tools))
	}
	list = append(list, d.idleHooks()...)
	for _, name := range d.agents.names {
		if agent, ok := d.agents.ByName(name); ok {
			for _, w := range disclosure.Warnings(agent, snapshot) {
				list = append(list, fmt.Sprintf("agent %q: %s", name, w))
			}
		}
	}
	return list
}

// idleHooks names the hooks whose plugin, as far as it is known, decides on no calls: each of its runs fails.
func (d *Daemon) idleHooks() (list []string) {
	for i := range d.cfg.Hooks {
		h := &d.cfg.Hooks[i]
		for _, p := range d.providers {
			plugin, ok := p.(interface{ IsHook() bool })
			if ok && h.Enabled && p.Identity().Name == h.Plugin && p.Offer().Tools != nil && !plugin.IsHook() {
				list = append(list, fmt.Sprintf("%s: hook %q: the plugin %q does not declare that it decides on calls, so that the hook fails each time", h.Pos, h.Name, h.Plugin))
			}
		}
	}
	return list
}

func granted(a *config.Agent) []string {
	if a.Toolsets == nil {
		return nil
	}
	return *a.Toolsets
}

// warn tells the log.
func (d *Daemon) warn() {
	for _, w := range d.warnings() {
		d.logger.Warn("configuration", "warning", w)
	}
}
