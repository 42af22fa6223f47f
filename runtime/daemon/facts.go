package daemon

import (
	"context"

	"github.com/hermesd/hermesd/internal/redact"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/pluginhost/sandbox"
	"github.com/hermesd/hermesd/runtime/pluginhost/store"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// facts answers the admin front end's questions about the daemon.
type facts struct {
	d *Daemon
	f *fronts
}

func (d *Daemon) adminOptions(f *fronts) *admin.Options {
	return &admin.Options{
		Desk: d.desk, Catalog: d.catalog, Daemon: facts{d, f}, Streams: f.mcp, Enter: d.via.enter, Dev: d, Logger: d.logger,
		Allow: d.peers.allow, Approver: d.peers.approver, Approvals: approvalDesk{d.approvals.Broker}, Audit: auditDesk{d.audit},
		Warnings: d.warnings, Mask: d.secrets.Mask,
	}
}

// Facts implements admin.Daemon.
func (x facts) Facts() admin.Facts {
	d := x.d
	out := admin.Facts{Version: d.options.Version, Started: d.started, StateDir: d.cfg.StateDir, Agents: d.agents.names, Blocked: d.healthy()}
	if len(d.cfg.Files) > 0 {
		out.ConfigPath = d.cfg.Files[0]
	}
	if x.f.url != "" {
		out.Addresses = append(out.Addresses, admin.Address{Name: "http", Address: x.f.url})
	}
	out.Addresses = append(out.Addresses, admin.Address{Name: "admin", Address: d.cfg.Listen.Admin})
	return out
}

// Providers implements admin.Daemon.
func (x facts) Providers() []provider.Provider {
	return x.d.dev.with(x.d.providers)
}

// InspectProvider implements admin.Daemon.
func (x facts) InspectProvider(name string) any {
	for _, p := range x.Providers() {
		if p.Identity().Name != name {
			continue
		}
		out := struct {
			*pluginhost.Inspection
			Layers []sandbox.Layer   `json:",omitempty"`
			Trust  *store.Inspection `json:",omitempty"`
		}{}
		switch p := p.(type) {
		case interface{ Inspect() pluginhost.Inspection }:
			plugin := p.Inspect()
			out.Inspection, out.Layers = &plugin, plugin.Layers
		case interface{ Layers() []sandbox.Layer }:
			out.Layers = p.Layers()
		}
		if k := x.d.trust.keepers[name]; k != nil {
			trust := k.Inspect()
			out.Trust = &trust
		}
		// A description of the plugin's own may show what it must not.
		raw, err := tool.JSON(out)
		if err != nil {
			return map[string]string{"error": x.d.secrets.Mask(err.Error())}
		}
		return redact.JSON(raw, x.d.secrets.Mask)
	}
	return nil
}

// Forget implements admin.Daemon.
func (x facts) Forget(ctx context.Context, agent, tool string) (int, error) {
	return x.d.searcher.learning.Forget(ctx, agent, tool)
}
