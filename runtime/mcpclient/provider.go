// Package mcpclient is the provider over an MCP server, reached over a process's standard streams, streamable HTTP, or the
// older HTTP with SSE.
//
// The official SDK shakes hands with the server and negotiates the protocol. Below it lies a line ([line]) that carries the
// SDK's few messages and, beside them, the provider's own: lists and calls, whose definitions and results pass as the
// bytes that the server sent. A line is one connection; a session is a line that has shaken hands; the supervisor keeps
// one session, and the provider keeps what the server last offered, whether it runs or not.
//
// # Questions and log lines
//
// A server may ask during a call (elicitation, sampling) and send log lines. MCP does not say which call they belong to,
// but for the stream that they come on over HTTP. See [line.belongsTo] for the rule; a question that cannot be placed is
// refused, a log line that cannot be placed goes to the daemon's log.
//
// # Tasks
//
// A server of protocol 2026-07-28 may answer a call with a task, if the call's host can let go of it. The call then follows
// the task to its end, and hands the server the answers that it asks for ([session.follow]).
//
// # Faults
//
// A call that is slow, or that the tool fails, fails alone. Only the end of the connection ends the session: the end of
// the process or its pipe, a session that the server forgot, or an HTTP server that, after a broken exchange, does not
// answer a ping either. A server that was silent through several calls in a row is asked in the same way.
package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hermesd/hermesd/runtime/pluginhost/sandbox"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providerlog"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Provider offers one MCP server's tools. Make it with [New]; Run starts it.
type Provider struct {
	opts       *Options
	said       *providerlog.Log
	log        *slog.Logger // what the daemon says about the server; part of said
	supervisor *supervisor.Supervisor[*session]
	cache      *cache
	turn       chan struct{} // one place: calls that must not run side by side
	legacy     atomic.Bool   // the server is known to need the handshake of before 2026-07-28
	doubted    atomic.Bool   // the newest handshake broke off the last time
	sse        atomic.Bool   // the server is known to have only HTTP with SSE
	silent     atomic.Int32  // calls in a row that timed out without a word from the server

	mu            sync.Mutex                      // serialises publishing
	kept          cacheFile                       // what the server listed last
	listed        digest                          // of the tools that offer has
	processLayers atomic.Pointer[[]sandbox.Layer] // of the last started process
	shelf         atomic.Pointer[provider.Shelf]
	watch         watchers

	steps  []Step // of a [Probe]; nil otherwise
	probe  bool
	offer  atomic.Pointer[provider.Offer] // without its status, but for a reason where the status has none
	params atomic.Pointer[map[string][]paramHeader]
}

// New checks the options and reads the definition cache; it starts nothing.
func New(opts *Options) (*Provider, error) {
	o, err := opts.complete()
	if err != nil {
		return nil, err
	}
	said := providerlog.New(o.Logger, o.Mask)
	p := &Provider{
		opts: o, said: said, log: said.Logger(),
		cache: newCache(o), turn: make(chan struct{}, 1),
	}
	p.supervisor, err = supervisor.New(p.start, &supervisor.Options{
		Name: o.Name, Lazy: o.Lazy, IdleTimeout: o.IdleTimeout, Wanted: p.watch.any, StartTimeout: o.ConnectTimeout, MaxLifetime: o.MaxLifetime,
		DrainTimeout: o.StopGrace, Backoff: o.Backoff, Starts: o.Starts, NeverQuarantine: true, TryOnCall: o.URL != "", Mask: o.Mask, Logger: p.log, OnStatus: func(provider.Status) { o.OnChange() },
	})
	if err != nil {
		return nil, err
	}
	p.offer.Store(&provider.Offer{})
	p.params.Store(&map[string][]paramHeader{})
	if o.Resources || o.Prompts {
		p.shelf.Store(p.arrange(&stock{}))
	}
	kept, err := p.cache.load()
	if err != nil {
		p.log.Warn("the list of tools from the last run cannot be read; the server is started to list them", "error", err)
	}
	if kept != nil {
		p.replace(kept.Tools)
		p.restock(&kept.stock)
	}
	return p, nil
}

// Identity implements [provider.Provider].
func (p *Provider) Identity() provider.Identity {
	return provider.Identity{
		Name: p.opts.Name, Source: tool.SourceMCP, Prefix: p.prefix(), Defer: p.opts.Defer, Override: p.opts.Override, Parallel: p.opts.Parallel,
	}
}

// Offer implements [provider.Provider].
func (p *Provider) Offer() *provider.Offer {
	offer := *p.offer.Load()
	remark := offer.Status.Reason
	offer.Status = p.supervisor.Status()
	offer.Status.Reason = cmp.Or(offer.Status.Reason, remark)
	return &offer
}

// Log is what the server says, and what is said about it.
func (p *Provider) Log() *providerlog.Log { return p.said }

// Warm implements [provider.Warmer].
func (p *Provider) Warm() { p.supervisor.Wake() }

// Restart implements [provider.Restarter].
func (p *Provider) Restart() { p.supervisor.Restart() }

// Run implements [provider.Runner].
func (p *Provider) Run(ctx context.Context) error {
	if p.opts.Lazy && !p.known() {
		p.supervisor.Wake() // to list its tools
	}
	return p.supervisor.Run(ctx)
}

// known reports whether the server has ever listed its tools.
func (p *Provider) known() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listed != digest{}
}

// publish makes a list from the server the present offer, and keeps it for the next run.
func (p *Provider) publish(tools []json.RawMessage) {
	if !p.replace(tools) {
		return
	}
	p.keep()
	p.opts.OnChange()
}

// keep writes what the server listed for the next run.
func (p *Provider) keep() {
	p.mu.Lock()
	kept := p.kept
	p.mu.Unlock()
	if err := p.cache.store(&kept); err != nil {
		p.log.Warn("the list of tools could not be kept for the next run", "error", err)
	}
}

// replace reports whether the list differs from the one that is offered.
func (p *Provider) replace(tools []json.RawMessage) bool {
	means := tools
	if p.legacy.Load() { // see runnable
		means = append(slices.Clip(tools), json.RawMessage(`"`+lastInitialize+`"`))
	}
	sum := digestOf(means)
	p.mu.Lock()
	defer p.mu.Unlock()
	if sum == p.listed {
		return false
	}
	c := p.translate(tools)
	p.distrust(c)
	p.listed, p.kept.Tools = sum, tools
	p.params.Store(&c.params)
	p.offer.Store(&provider.Offer{Tools: c.tools, Refused: c.refused, Status: provider.Status{Reason: c.remark}})
	return true
}
