// Package daemon puts hermesd together: it makes the parts that a configuration names, runs them, and stops them in the
// right order. It is the only package that knows them all.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hermesd/hermesd/internal/redact"
	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/bridge"
	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/store"
	"github.com/hermesd/hermesd/search"
)

// Options configure a daemon. Config is required.
type Options struct {
	Config  *config.Config
	Version string
	// Service says that it runs as a system service: there is no agent without a token then.
	Service bool
	// Standalone serves no socket and no port: its owner uses [Daemon.ServeStream].
	Standalone bool
	// Logger gets what happens; nil discards it.
	Logger *slog.Logger
}

// Daemon is a running hermesd. New makes it, Run runs it.
type Daemon struct {
	options Options
	logger  *slog.Logger
	cfg     *config.Config
	secrets *redact.Masker // the configuration's, and the tokens that are met while it runs
	dirs    directories
	started time.Time

	store     *store.Store
	audit     *audit.Log
	engine    *search.Engine
	searcher  *searcher
	catalog   *catalog.Catalog
	providers []provider.Runner // those of the configuration
	trust     *trust
	dev       developed // those that are being written
	agents    *agents
	policy    *Policy
	peers     *peers
	via       *via
	hooks     callHooks
	approvals approvals
	guard     callGuard
	results   keptResults
	pipeline  *pipeline.Pipeline
	desk      *frontend.Desk
	fronts    *fronts

	stop    atomic.Pointer[stopTimes] // nil while it runs
	refresh chan struct{}             // some provider's offer changed
	ready   chan struct{}
	settled chan struct{}
	closing sync.Once
}

// New checks the options and makes nothing that would have to be closed.
func New(opts *Options) (*Daemon, error) {
	if opts == nil || opts.Config == nil {
		return nil, errors.New("daemon: a configuration is required")
	}
	d := &Daemon{
		options: *opts, cfg: opts.Config, logger: opts.Logger, secrets: configured(opts.Config), via: newVia(),
		refresh: make(chan struct{}, 1), ready: make(chan struct{}), settled: make(chan struct{}),
	}
	if d.logger == nil {
		d.logger = slog.New(slog.DiscardHandler)
	}
	d.logger = slog.New(d.secrets.Handler(d.logger.Handler()))
	var err error
	if d.agents, err = newAgents(d.cfg, opts.Service); err != nil {
		return nil, err
	}
	d.agents.heard = func(agent, token string) { d.secrets.Set("agent "+agent, token) }
	policy, diags := NewPolicy(d.cfg, d.logger)
	if err := diags.Err(); err != nil {
		return nil, err
	}
	d.policy = policy
	return d, nil
}

// Ready is closed when the front ends answer. Providers may still be starting then.
func (d *Daemon) Ready() <-chan struct{} { return d.ready }

// Settled is closed when every provider has told its tools once, or has failed to.
func (d *Daemon) Settled() <-chan struct{} { return d.settled }

// Run brings the daemon up and serves until ctx ends; then it drains and stops everything. An error means that it could
// not start, or that it had to stop.
func (d *Daemon) Run(ctx context.Context) (err error) {
	d.started = time.Now()
	defer func() { err = d.secrets.Error(err) }()
	if err := d.open(); err != nil {
		return errors.Join(err, d.close())
	}
	defer func() { err = errors.Join(err, d.close()) }()

	// Providers outlive the front ends: calls in flight are drained before their tools go.
	providing, stopProviders := context.WithCancelCause(context.WithoutCancel(ctx))
	providers := d.runProviders(providing)
	defer func() {
		stopProviders(d.stopBy())
		err = errors.Join(err, providers.Wait())
	}()

	serving, ctx := errgroup.WithContext(ctx)
	d.fronts.serve(serving)
	close(d.ready)
	<-ctx.Done()
	d.logger.Info("stopping")
	d.setStop(time.Now())
	d.approvals.Close() // calls that wait for a human would hold the shutdown to its deadline
	drain, cancel := context.WithDeadline(context.WithoutCancel(ctx), d.stop.Load().calls)
	defer cancel()
	return errors.Join(d.fronts.close(drain), serving.Wait())
}

// open makes every part, from the bottom up.
func (d *Daemon) open() error {
	dirs, err := makeDirectories(d.cfg.StateDir)
	if err != nil {
		return err
	}
	d.dirs = dirs
	if d.store, err = store.Open(dirs.state, &store.Options{Logger: d.logger}); err != nil {
		return err
	}
	if err := d.dirs.renew(); err != nil {
		return err
	}
	if err := d.openAudit(); err != nil {
		return err
	}
	if d.engine, err = newEngine(d.cfg, dirs.cache, d.logger); err != nil {
		return err
	}
	if d.searcher, err = d.newSearcher(); err != nil {
		return err
	}
	d.trust = newTrust(d.cfg, d.logger)
	if d.providers, err = d.newProviders(); err != nil {
		return err
	}
	d.catalog = catalog.New(&catalog.Options{Logger: d.logger, OnChange: d.newGeneration})
	if err := d.oversee(); err != nil {
		return err
	}
	if d.pipeline, err = d.newPipeline(); err != nil {
		return err
	}
	d.desk = &frontend.Desk{
		Agents:     d.agents,
		Disclosure: disclosure.New(d.catalog),
		Bridge:     bridge.New(&bridge.Options{Pipeline: d.searcher.learning.Watch(d.pipeline), Refused: d.guard.refused, Search: d.searcher}),
		Pipeline:   d.pipeline,
		Sessions:   frontend.Sessions{Idle: d.cfg.Listen.SessionIdle, OnEnd: d.sessionEnded},
	}
	if d.fronts, err = d.newFronts(); err != nil {
		return err
	}
	d.publish(nil)
	return nil
}

func (d *Daemon) openAudit() error {
	writer, err := d.store.Writer(d.cfg.Audit.Sync == "power")
	if err != nil {
		return err
	}
	journal, err := writer.Journal("audit")
	if err != nil {
		return err
	}
	key, err := audit.LoadKey(filepath.Join(d.dirs.state, "audit.key"))
	if err != nil {
		return err
	}
	d.audit, err = audit.Open(context.Background(), writer, journal, &audit.Options{
		Key: key, DiskUsed: d.store.DiskUsed,
		Arguments: d.cfg.Audit.Arguments, Mask: d.secrets.Mask,
		Allow: d.cfg.Audit.OnFailure == "allow",
		Keep:  d.cfg.Audit.Keep, MaxSize: int64(d.cfg.Audit.MaxSize),
		Logger: d.logger,
	})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

func (d *Daemon) newPipeline() (*pipeline.Pipeline, error) {
	return pipeline.New(&pipeline.Options{
		Guard: d.guard, Hooks: d.hooks, Rules: d.policy, Approvals: &d.approvals, Audit: d.audit, Results: d.results,
		Timeout: d.cfg.Tools.CallTimeout, Mask: d.secrets.Mask, Logger: d.logger,
	})
}

// changed is called by providers, from any goroutine, and never blocks them.
func (d *Daemon) changed() {
	select {
	case d.refresh <- struct{}{}:
	default: // one is pending already
	}
}

// newGeneration is told of every new snapshot of the catalog.
func (d *Daemon) newGeneration(s *catalog.Snapshot) {
	d.searcher.update(s)
	d.fronts.refresh()
}

// runProviders runs every provider, and reads again what they offer when one says that it changed.
func (d *Daemon) runProviders(ctx context.Context) *errgroup.Group {
	var group errgroup.Group
	group.Go(func() error { return d.results.Run(ctx) })
	group.Go(func() error { return d.desk.Sessions.Run(ctx) })
	for _, p := range d.providers {
		group.Go(func() error { return p.Run(ctx) })
	}
	d.trust.run(ctx, d.providers, &group)
	d.searcher.run(ctx, &group)
	d.changed() // providers that know their tools from an earlier run never say that they changed
	group.Go(func() error {
		settled := d.settled
		watch := providerWatch{d.hooks.Chain, map[string]provider.State{}}
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-d.refresh:
				d.catalog.Refresh()
				watch.look(d.providers)
				d.fronts.refresh() // resources and prompts are no part of a generation
			}
			if settled != nil && !slices.ContainsFunc(d.providers, unheard) {
				close(settled)
				settled = nil
				d.warn()
			}
		}
	})
	return &group
}

// unheard reports whether a provider has not told its tools yet and may still do so in its first attempt.
func unheard(p provider.Runner) bool {
	offer := p.Offer()
	switch offer.Status.State {
	case provider.Ready, provider.Backoff, provider.Quarantined, provider.Disabled:
		return false
	default:
		return offer.Tools == nil
	}
}

// close ends what open made, in the opposite order. It may be called more than once.
func (d *Daemon) close() (err error) {
	d.closing.Do(func() {
		err = errors.Join(err, d.closeOversight())
		if d.engine != nil {
			err = errors.Join(err, d.engine.Close())
		}
		if d.audit != nil {
			err = errors.Join(err, d.audit.Close())
		}
		if d.store != nil { // whose lock says that the runtime directory is this daemon's
			err = errors.Join(err, os.RemoveAll(d.dirs.runtime), d.store.Close())
		}
	})
	return err
}
