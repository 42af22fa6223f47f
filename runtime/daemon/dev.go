package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hermesd/hermesd/internal/redact"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/results"
	"github.com/hermesd/hermesd/runtime/tool"
)

// devStopGrace is how long a plugin that is being written may take to stop: its author waits for the next one.
const devStopGrace = time.Second

// developed are the plugins that are being written: providers that come and go while the daemon runs.
type developed struct {
	mu   sync.Mutex // held while the catalog is told, so that it hears of the changes in their order
	list []*devSession
}

// with is the configured providers with those that are being written: in the place of one of the same name, else last.
func (v *developed) with(configured []provider.Runner) []provider.Provider {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.merge(configured)
}

func (v *developed) merge(configured []provider.Runner) []provider.Provider {
	all := make([]provider.Provider, len(configured))
	for i, p := range configured {
		all[i] = p
	}
	for _, s := range v.list {
		i := slices.IndexFunc(all, func(p provider.Provider) bool { return p.Identity().Name == s.Identity().Name })
		if i >= 0 {
			all[i] = s
		} else {
			all = append(all, s)
		}
	}
	return all
}

// devSession is one of them. It implements admin.DevSession.
type devSession struct {
	*pluginhost.Provider
	close func() error
}

// Close implements admin.DevSession.
func (s *devSession) Close() error { return s.close() }

// AttachDev implements admin.Dev.
func (d *Daemon) AttachDev(p *admin.DevPlugin, onChange func()) (admin.DevSession, error) {
	opts, err := d.devOptions(p)
	if err != nil {
		return nil, err
	}
	opts.OnChange = func() { d.changed(); onChange() }
	plugin, err := pluginhost.New(opts)
	if err != nil {
		return nil, tool.Errorf(tool.BadRequest, "%w", err)
	}
	s := &devSession{Provider: plugin}
	if err := d.dev.add(s); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- plugin.Run(ctx) }()
	s.close = sync.OnceValue(func() error {
		d.publish(func() { d.dev.list = slices.DeleteFunc(d.dev.list, func(x *devSession) bool { return x == s }) })
		cancel(d.stopBy())
		return <-ended
	})
	d.publish(nil)
	d.logger.Info("a plugin that is being written is attached", "provider", opts.Name, "program", opts.Path)
	return s, nil
}

func (v *developed) add(s *devSession) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	name := s.Identity().Name
	if slices.ContainsFunc(v.list, func(x *devSession) bool { return x.Identity().Name == name }) {
		return tool.Errorf(tool.BadRequest, "a plugin is attached as %q already; end that session, or choose another name with --name", name)
	}
	v.list = append(v.list, s)
	return nil
}

// publish changes the list and tells the catalog.
func (d *Daemon) publish(change func()) {
	d.dev.mu.Lock()
	defer d.dev.mu.Unlock()
	if change != nil {
		change()
	}
	d.catalog.SetProviders(append(d.dev.merge(d.providers), results.NewTool(d.results.Store)))
}

// devOptions are those of the configured plugin of that name, if there is one, with what the developer says.
func (d *Daemon) devOptions(p *admin.DevPlugin) (*pluginhost.Options, error) {
	for i := range d.cfg.MCPServers {
		if d.cfg.MCPServers[i].Name == p.Name {
			return nil, tool.Errorf(tool.BadRequest, "%q is an MCP server here; choose another name with --name", p.Name)
		}
	}
	opts := &pluginhost.Options{}
	if i := slices.IndexFunc(d.cfg.Plugins, func(b config.Plugin) bool { return b.Name == p.Name }); i >= 0 {
		block := &d.cfg.Plugins[i]
		opts = &pluginhost.Options{
			Env: maps.Clone(block.Env), PassEnv: block.PassEnv, Config: block.Config, Builtin: block.Trust == "builtin",
			StartTimeout: block.StartTimeout, CallTimeout: block.CallTimeout, MTLS: &block.MTLS,
			MaxMessageBytes: int(block.MaxMessageBytes), Grant: slices.Clone(block.Grant), Prefix: block.Prefix.Text,
			Override: block.Override, Defer: block.Defer, Isolation: block.Isolation,
			Sandbox: sandboxFor(d.cfg, d.dirs, block.AllowRead, block.AllowWrite, block.MaxMemory),
		}
	}
	if opts.Env == nil {
		opts.Env = map[string]string{}
	}
	maps.Copy(opts.Env, p.Env)
	var secrets []string
	for name, value := range opts.Env {
		if redact.SecretName(name) {
			secrets = append(secrets, value)
		}
	}
	slices.Sort(secrets)
	d.secrets.Set("plugin being written "+p.Name, secrets...)
	opts.Grant = append(opts.Grant, p.Grant...)
	if len(p.Config) > 0 {
		opts.Config = json.RawMessage(p.Config)
	}
	if !tool.ValidName(p.Name) {
		return nil, tool.Errorf(tool.BadRequest, "%q is no name for a provider; choose another with --name", p.Name)
	}
	if len(p.Command) == 0 {
		return nil, errors.New("there is no program")
	}
	opts.Name, opts.Path, opts.Args = p.Name, p.Command[0], p.Command[1:]
	opts.StopGrace, opts.RuntimeDir = devStopGrace, d.dirs.runtime
	// A folder of its own: the configured plugin of that name may still run.
	opts.StateDir = filepath.Join(d.dirs.state, "dev", p.Name)
	opts.Mask = d.secrets.Mask
	opts.Logger = d.logger.With("provider", fmt.Sprintf("%s (dev)", p.Name))
	return opts, nil
}
