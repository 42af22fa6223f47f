// Package mcp serves agents over the Model Context Protocol: streamable HTTP for both protocol generations on one
// endpoint, and newline-delimited streams for `hermesd mcp`.
//
// There is one SDK server for each agent. It lives as long as the agent does and is changed in place, so that sessions
// and subscriptions outlive a change of the catalog. It has one tool of its own, the dispatcher, that no list shows:
// every call, of whatever name, goes through it to the desk, and tools/list is answered with the bytes of the agent's
// assembly.
//
// A call may outlive its request in two ways, both since protocol 2026-07-28: it asks its client something and waits for the
// request that brings the answer ([parked]), or it becomes a task, which the client looks after ([tasks]).
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/frontend"
)

// Path is where the endpoint is served.
const Path = "/mcp"

// The protocol's headers that choose a handler.
const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
)

// stateless is the first protocol version without sessions, lastWithSessions the one before it.
const (
	stateless        = "2026-07-28"
	lastWithSessions = "2025-11-25"
)

const (
	defaultSessions     = 1000
	defaultIdle         = 30 * time.Minute
	defaultEventBytes   = 16 << 20
	defaultWaitForHuman = 5 * time.Minute
)

// Options configure the front end. Desk and Gate are required; the rest works as zero values.
type Options struct {
	Desk *frontend.Desk
	// Gate checks requests and finds their agent.
	Gate *frontend.Gate
	// Version is what the server says about itself.
	Version string
	// Instructions are for the agent's model, beside the tools' own texts; "" for none.
	Instructions string
	// MaxSessions bounds the live sessions of all agents over HTTP, and beside them the streams, and see [frontend.Shares]
	// those of one; 0 is 1000.
	MaxSessions int
	// SessionIdle ends a session without requests, within a quarter of it; 0 is 30 minutes.
	SessionIdle time.Duration
	// EventBytes bounds what is kept of streams for clients that reconnect; 0 is 16 MiB.
	EventBytes int
	// AskTimeout bounds how long a call waits for an answer from the human behind the agent; 0 is 5 minutes.
	AskTimeout time.Duration
	// TaskKeep is how long an agent can ask for a task after the latest moment at which its call can end; 0 is 10 minutes.
	TaskKeep time.Duration
	// Logger gets the SDK's and our own lines; nil discards them.
	Logger *slog.Logger
}

// Server is the MCP front end.
type Server struct {
	options      Options
	identity     sdk.Meta        // what every result says about the server (SEP-2575)
	identityJSON json.RawMessage // the same, encoded
	sdkLog       *slog.Logger
	http         http.Handler
	events       *events
	parked       *parked
	tasks        *tasks
	watched      watched

	// base ends when the server closes; every call ends with it.
	base context.Context
	stop context.CancelFunc

	refreshing sync.Mutex // taken before mu

	mu       sync.Mutex
	agents   map[string]*agentServer
	closed   bool
	attached frontend.Shares // a place for each stream
	streams  sync.WaitGroup  // and those who tell of changed resources, and calls of sessions over HTTP
}

// New makes a front end. It starts nothing.
func New(opts *Options) (*Server, error) {
	if opts == nil || opts.Desk == nil || opts.Gate == nil {
		return nil, errors.New("mcp: Options.Desk and Options.Gate are required")
	}
	o := *opts
	o.MaxSessions = cmp.Or(o.MaxSessions, defaultSessions)
	o.SessionIdle = cmp.Or(o.SessionIdle, defaultIdle)
	o.EventBytes = cmp.Or(o.EventBytes, defaultEventBytes)
	o.AskTimeout = cmp.Or(o.AskTimeout, defaultWaitForHuman)
	o.Version = cmp.Or(o.Version, "devel")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{options: o, agents: map[string]*agentServer{}, events: newEvents(o.MaxSessions, o.EventBytes)}
	s.attached.Max = int64(o.MaxSessions)
	s.identity = sdk.Meta{sdk.MetaKeyServerInfo: s.implementation()}
	var err error
	if s.identityJSON, err = json.Marshal(s.identity); err != nil {
		return nil, err
	}
	s.events.onClosed = o.Desk.Sessions.End
	s.sdkLog = slog.New(demoted{o.Logger.Handler()})
	s.base, s.stop = context.WithCancel(context.Background())
	s.events.all = s.base
	s.tasks = newTasks(cmp.Or(o.TaskKeep, defaultTaskKeep))
	s.parked = newParked(o.AskTimeout, s.tasks)
	s.http = o.Gate.Handler(s.router())
	return s, nil
}

func (s *Server) implementation() *sdk.Implementation {
	return &sdk.Implementation{Name: "hermesd", Version: s.options.Version}
}

// Handler serves the endpoint; mount it at [Path].
func (s *Server) Handler() http.Handler { return s.http }

// Refresh compares every agent's tools with what its clients were told, and tells them that the list changed where it
// did. Call it after each generation of the catalog and after a reload of the configuration. Calls of agents that
// are no more are cancelled and their sessions ended, which nobody waits for. Requests go on meanwhile.
func (s *Server) Refresh() {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	s.mu.Lock()
	all := maps.Clone(s.agents)
	s.mu.Unlock()
	for name, a := range all {
		if agent, ok := s.options.Desk.Agents.ByName(name); ok {
			a.update(agent)
			continue
		}
		s.mu.Lock()
		delete(s.agents, name)
		s.mu.Unlock()
		a.cancel()
		if !s.goWork(a.end) { // closed
			a.end()
		}
	}
}

// EndTasks cancels the calls that go on without a request, whose results nobody could fetch any more. Call it before calls
// in flight are waited for.
func (s *Server) EndTasks() { s.tasks.cancelAll() }

// Close ends all calls, sessions and streams, and waits for them until ctx ends. It may be called more than once.
func (s *Server) Close(ctx context.Context) error {
	s.stop() // before anything is waited for: an open stream would hold the shutdown to its deadline
	s.mu.Lock()
	s.closed = true
	all := make([]*agentServer, 0, len(s.agents))
	for _, a := range s.agents {
		all = append(all, a)
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, a := range all {
			a.end()
		}
		s.streams.Wait()
		s.parked.wait()
		s.tasks.dropAll()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// goWork runs f in a goroutine that Close waits for, unless the front end is closed.
func (s *Server) goWork(f func()) bool {
	if !s.begin() {
		return false
	}
	go func() {
		defer s.streams.Done()
		f()
	}()
	return true
}

// begin has Close wait until streams.Done, unless the front end is closed.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.streams.Add(1)
	}
	return !s.closed
}

// server returns the SDK server of an agent, made at its first request. It is nil once the front end is closed.
func (s *Server) server(agent *disclosure.Agent) *agentServer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	a, ok := s.agents[agent.Name]
	if !ok {
		a = newAgentServer(s, agent)
		s.agents[agent.Name] = a
	}
	a.agent.Store(agent) // who was just let in is as the configuration has it now
	return a
}

var _ sdk.EventStore = (*events)(nil)
