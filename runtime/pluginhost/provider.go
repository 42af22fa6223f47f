package pluginhost

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providerlog"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
	"github.com/hermesd/hermesd/runtime/schema"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Provider is one plugin. Make it with [New]; [Provider.Run] gives it life.
type Provider struct {
	opts       *Options
	program    *program
	cache      *cache
	log        *providerlog.Log
	schemas    *schema.Cache
	keys       *keySpace
	supervisor *supervisor.Supervisor[*instance]
	verdicts   verdicts

	delegations delegations

	mu      sync.Mutex // of what the offer is made from
	known   *knowledge // nil before anything is known
	hash    string     // of known.tools
	tools   []tool.Definition
	refused map[tool.Name]string
	running *layers // of the last started process; nil before

	offer atomic.Pointer[provider.Offer] // without its status
}

var (
	_ provider.Runner    = (*Provider)(nil)
	_ provider.Checker   = (*Provider)(nil)
	_ provider.Warmer    = (*Provider)(nil)
	_ provider.Restarter = (*Provider)(nil)
)

// New checks the options and starts nothing. What is wrong with the binary is found by Run and shown as a status.
func New(opts *Options) (*Provider, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("plugin host: %w", err)
	}
	log := providerlog.New(o.Logger, o.Mask)
	o.Logger = log.Logger()
	p := &Provider{
		opts: o, program: &program{path: o.Path, pinned: o.SHA256, find: o.Installed, trust: o.Trust}, cache: newCache(o), log: log,
		schemas: schema.NewCache(&schema.Options{Logger: o.Logger}), keys: newKeySpace(o),
	}
	p.offer.Store(&provider.Offer{})
	p.supervisor, err = supervisor.New(p.launch, &supervisor.Options{
		Name: o.Name, Lazy: o.Lazy, IdleTimeout: o.IdleTimeout, StartTimeout: o.StartTimeout, DrainTimeout: o.StopGrace, Backoff: o.Backoff,
		Starts: o.Starts, Mask: o.Mask, Logger: o.Logger, OnStatus: func(provider.Status) { o.OnChange() },
	})
	if err != nil {
		return nil, fmt.Errorf("plugin host: %w", err)
	}
	return p, nil
}

// Run implements provider.Runner.
func (p *Provider) Run(ctx context.Context) error {
	if p.opts.Lazy && !p.recall() {
		p.supervisor.Wake()
	}
	return p.supervisor.Run(ctx)
}

// recall publishes what the cache knows and reports whether the process can stay unstarted. A tool whose precondition did
// not hold is worth a start: only the process can say whether it holds now.
func (p *Provider) recall() bool {
	file, _, digest, err := p.program.open()
	if err != nil {
		return false // the start will say why
	}
	if err := file.Close(); err != nil {
		p.opts.Logger.Warn("plugin's binary was not closed", "error", err)
	}
	known, err := p.cache.load(digest)
	if err != nil {
		p.opts.Logger.Warn("what was known of the plugin cannot be read; it is started to find out", "error", err)
	}
	if known == nil {
		return false
	}
	for own, reason := range known.unmet {
		p.verdicts.announce(own, reason)
	}
	p.learn(known)
	return len(known.unmet) == 0
}

// recallLast publishes what is known of an earlier binary, after the one in its place was refused: who calls its tools is told
// that they are quarantined, not that there are none.
func (p *Provider) recallLast() {
	p.mu.Lock()
	known := p.known
	p.mu.Unlock()
	if known != nil {
		return
	}
	known, err := p.cache.last()
	if err != nil {
		p.opts.Logger.Warn("what was known of the plugin before its binary changed cannot be read", "error", err)
	}
	if known != nil {
		p.learn(known)
	}
}

// Identity implements provider.Provider.
func (p *Provider) Identity() provider.Identity {
	return provider.Identity{Name: p.opts.Name, Source: p.opts.source(), Prefix: p.opts.Prefix, Defer: p.opts.Defer, Override: p.opts.Override}
}

// Offer implements provider.Provider.
func (p *Provider) Offer() *provider.Offer {
	offer := *p.offer.Load()
	offer.Status = p.supervisor.Status()
	return &offer
}

// Log is what the plugin says, and what is said about it.
func (p *Provider) Log() *providerlog.Log { return p.log }

// Warm implements provider.Warmer.
func (p *Provider) Warm() { p.supervisor.Wake() }

// Restart implements provider.Restarter.
func (p *Provider) Restart() { p.supervisor.Restart() }

// learn takes over what is known of the plugin and publishes it. Tools that did not change keep their memory.
func (p *Provider) learn(k *knowledge) {
	hash := hashOf(k.tools)
	p.mu.Lock()
	same := p.known != nil && p.hash == hash
	if same {
		k.faults = p.known.faults
	}
	p.known, p.hash = k, hash
	p.mu.Unlock()
	if !same {
		if k.faults == nil {
			k.faults = faultsOf(k.tools)
		}
		tools, refused := p.opts.definitions(k.tools, k.faults)
		p.opts.distrust(tools, refused)
		for name, reason := range refused {
			refused[name] = p.opts.Mask(reason)
		}
		p.mu.Lock()
		p.tools, p.refused = tools, refused
		p.mu.Unlock()
	}
	p.publish()
}

// publish makes an offer of what is known now.
func (p *Provider) publish() {
	p.mu.Lock()
	offer := &provider.Offer{Tools: p.tools, Refused: p.refused, Unmet: map[tool.Name]string{}}
	for i := range p.tools {
		def := &p.tools[i]
		if reason := p.missingEnv(def); reason != "" {
			offer.Unmet[def.Name] = reason
		} else if reason := p.verdicts.reason(def.OwnName); reason != "" {
			offer.Unmet[def.Name] = p.opts.Mask(reason)
		}
	}
	before := p.offer.Swap(offer)
	p.mu.Unlock()
	if !sameOffer(before, offer) {
		p.opts.OnChange()
	}
}

// sameOffer compares two offers; equal lists of tools share their memory.
func sameOffer(a, b *provider.Offer) bool {
	return len(a.Tools) == len(b.Tools) && (len(a.Tools) == 0 || &a.Tools[0] == &b.Tools[0]) &&
		maps.Equal(a.Unmet, b.Unmet) && maps.Equal(a.Refused, b.Refused)
}

// remember writes what is known to the cache. A cache that cannot be written costs starts, nothing else.
func (p *Provider) remember(k *knowledge) {
	saved := *k
	saved.unmet = p.verdicts.unmet()
	if err := p.cache.save(&saved); err != nil {
		p.opts.Logger.Warn("what is known of the plugin's tools was not kept; it is started when hermesd starts", "error", err)
	}
}

// find returns the definition of a tool by its full name, nil if there is none.
func (p *Provider) find(name tool.Name) *tool.Definition {
	tools := p.offer.Load().Tools
	if i := slices.IndexFunc(tools, func(d tool.Definition) bool { return d.Name == name }); i >= 0 {
		return &tools[i]
	}
	return nil
}

// missingEnv says which variable a tool needs and the process does not get.
func (p *Provider) missingEnv(def *tool.Definition) string {
	for _, name := range def.RequiresEnv {
		if p.opts.Env[name] != "" {
			continue
		}
		set := os.Getenv(name) != ""
		switch passed := slices.Contains(p.opts.PassEnv, name); {
		case !passed && !set:
			return fmt.Sprintf("it needs the environment variable %s: set it for hermesd and name it in pass_env of plugin %q", name, p.opts.Name)
		case !passed:
			return fmt.Sprintf("it needs the environment variable %s: name it in pass_env of plugin %q", name, p.opts.Name)
		case !set:
			return fmt.Sprintf("it needs the environment variable %s: set it for hermesd and restart hermesd", name)
		}
	}
	return ""
}

// relist asks a running plugin for its tools again.
func (p *Provider) relist(ctx context.Context, i *instance) error {
	ctx, cancel := context.WithTimeout(ctx, p.opts.StartTimeout)
	defer cancel()
	list, err := i.list(ctx)
	if err != nil {
		return err
	}
	known := &knowledge{digest: i.digest, describe: i.describe, tools: list}
	p.learn(known)
	p.checkAll(ctx, i)
	p.remember(known)
	return nil
}

// capable reports whether the plugin declared that it wants to ask this of the host.
func capable(d *pb.DescribeResponse, kind string) bool {
	return slices.Contains(d.GetCapabilities(), kind)
}
