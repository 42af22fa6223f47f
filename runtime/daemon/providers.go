package daemon

import (
	"fmt"
	"path/filepath"
	goruntime "runtime"

	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/pluginhost/sandbox"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
	"github.com/hermesd/hermesd/runtime/tool"
)

// startsPerCore bounds how many providers start at once, so that a hundred never do.
const startsPerCore = 2

// newProviders makes every provider of a configuration, in its order, also those that are switched off; none is started.
func (d *Daemon) newProviders() ([]provider.Runner, error) {
	cfg, dirs, trust := d.cfg, d.dirs, d.trust
	starts := supervisor.NewGate(startsPerCore * goruntime.NumCPU())
	var list []provider.Runner
	for i := range cfg.Plugins {
		block := &cfg.Plugins[i]
		if !block.Enabled {
			list = append(list, newSwitchedOff(tool.SourcePlugin, block.Name))
			continue
		}
		argv := block.Argv()
		p, err := pluginhost.New(&pluginhost.Options{
			Name: block.Name, Path: argv[0], Args: argv[1:],
			Env: block.Env, PassEnv: block.PassEnv, Config: block.Config,
			Locate:  func(pointer string) string { return cfg.PluginConfigAt(block.Name, pointer).String() },
			Builtin: block.Trust == "builtin", Lazy: block.Start == "lazy",
			IdleTimeout: block.IdleTimeout, StartTimeout: block.StartTimeout, StopGrace: block.StopGrace, CallTimeout: block.CallTimeout,
			Backoff: supervisor.Backoff{Min: block.Backoff.Min, Max: block.Backoff.Max, Failures: block.Quarantine.Failures, Window: block.Quarantine.Window},
			MTLS:    &block.MTLS, MaxMessageBytes: int(block.MaxMessageBytes), Grant: block.Grant,
			StateDir: filepath.Join(dirs.state, "plugins", block.Name), RuntimeDir: dirs.runtime, CacheDir: dirs.cache,
			KeysDir: filepath.Join(dirs.state, "keys", block.Name),
			Prefix:  block.Prefix.Text, Override: block.Override, Defer: block.Defer,
			SHA256: block.SHA256, Installed: trust.installation(block), Isolation: block.Isolation,
			Trust:   trust.keeper(block.Name, "plugin", block.Trust == "builtin"),
			Sandbox: sandboxFor(cfg, dirs, block.AllowRead, block.AllowWrite, block.MaxMemory),
			Starts:  starts, Mask: d.secrets.Mask, Logger: d.logger.With("provider", block.Name), OnChange: d.changed,
		})
		if err != nil {
			return nil, fmt.Errorf("%s: plugin %q: %w", block.Pos, block.Name, err)
		}
		list = append(list, p)
	}
	for i := range cfg.MCPServers {
		block := &cfg.MCPServers[i]
		if !block.Enabled {
			list = append(list, newSwitchedOff(tool.SourceMCP, block.Name))
			continue
		}
		o, err := mcpOptions(cfg, block, dirs, d.options.Version, d.secrets)
		if err != nil {
			return nil, fmt.Errorf("%s: mcp_server %q: %w", block.Pos, block.Name, err)
		}
		o.Trust, o.Via = trust.keeper(block.Name, "mcp", false), d.via.String
		o.CacheDir, o.Starts, o.OnChange = dirs.cache, starts, d.changed
		o.Mask, o.Logger = d.secrets.Mask, d.logger.With("provider", block.Name)
		p, err := mcpclient.New(o)
		if err != nil {
			return nil, fmt.Errorf("%s: mcp_server %q: %w", block.Pos, block.Name, err)
		}
		list = append(list, p)
	}
	return list, nil
}

// sandboxFor is what a provider's program may use, with everything closed that is the daemon's own.
func sandboxFor(cfg *config.Config, dirs directories, read, write []string, memory config.Size) sandbox.Options {
	private := append([]string{dirs.state, dirs.cache, dirs.runtime}, cfg.Files...)
	return sandbox.Options{
		Read: read, Write: write, Memory: uint64(memory), Private: private, AdminSocket: cfg.Listen.Admin, Groups: dirs.groups,
	}
}
