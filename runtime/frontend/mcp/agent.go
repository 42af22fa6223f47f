//lint:file-ignore SA1019 logging and sampling are deprecated from 2026-07-28, and what the clients before it have

package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/disclosure"
)

// dispatcher is the name of the tool that every call goes through. No agent can call it by this name, which no tool may
// have: calls are renamed to it after they were taken in.
const dispatcher = "hermesd.dispatch"

// The methods that the middleware looks at.
const (
	methodInitialize = "initialize"
	methodSetLevel   = "logging/setLevel"
	methodListTools  = "tools/list"
	methodCallTool   = "tools/call"
	methodListen     = "subscriptions/listen"
)

// methodUpdated tells that a resource changed.
const methodUpdated = "notifications/resources/updated"

// The methods of what a server asks a client.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// onePage is more tools than any agent has: clients that do not follow cursors would miss the rest of a longer list.
const onePage = 1 << 30

// agentServer is one agent's SDK server, and the lists that its clients know.
type agentServer struct {
	owner *Server
	sdk   *sdk.Server
	agent atomic.Pointer[disclosure.Agent]

	base context.Context // ends with the agent or the front end, and every call that belongs to no session of HTTP with it
	stop context.CancelFunc

	mu      sync.Mutex // held while the list changes
	listing atomic.Pointer[listing]
	shelved atomic.Pointer[shelves]
	bound   []string // tools registered for the sake of their header annotations

	subscribed subscriptions
	told       tellings
}

func newAgentServer(owner *Server, agent *disclosure.Agent) *agentServer {
	a := &agentServer{owner: owner}
	a.base, a.stop = context.WithCancel(owner.base)
	a.sdk = sdk.NewServer(owner.implementation(), &sdk.ServerOptions{
		Instructions: owner.options.Instructions,
		Logger:       owner.sdkLog,
		PageSize:     onePage,
		// What an agent may see is its own: no cache may give it to another.
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
		Capabilities: &sdk.ServerCapabilities{
			Logging: &sdk.LoggingCapabilities{},
			Tools:   &sdk.ToolCapabilities{ListChanged: true},
			// Whether there are any is known only when the servers behind have started.
			Resources:  &sdk.ResourceCapabilities{ListChanged: true, Subscribe: true},
			Prompts:    &sdk.PromptCapabilities{ListChanged: true},
			Extensions: map[string]any{tasksExtension: struct{}{}},
		},
		CompletionHandler:  a.complete,
		SubscribeHandler:   a.subscribe,
		UnsubscribeHandler: a.unsubscribe,
	})
	a.serveTasks()
	a.sdk.AddReceivingMiddleware(a.receive)
	a.sdk.AddSendingMiddleware(a.send)
	a.agent.Store(agent)
	a.announce()
	a.current()
	a.shelves()
	return a
}

// update takes the agent as the configuration has it now and tells clients if its list changed.
func (a *agentServer) update(agent *disclosure.Agent) {
	a.agent.Store(agent)
	a.current()
	a.shelves()
}

// current is the agent's list for the assembly of this moment. Where that changed since the last look, the list is made
// again; clients hear of it only if its bytes changed.
func (a *agentServer) current() *listing {
	assembly := a.owner.options.Desk.Disclosure.For(a.agent.Load())
	if l := a.listing.Load(); l != nil && l.assembly == assembly {
		return l
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.listing.Load()
	if last != nil && last.assembly == assembly {
		return last
	}
	made := newListing(assembly, a.owner.options.Logger)
	changed := last == nil || last.digest != made.digest
	if !changed {
		made.tools = last.tools
	}
	a.listing.Store(made)
	if changed {
		a.bind(made)
		if last != nil {
			a.announce()
		}
	}
	return made
}

// announce makes the SDK tell every client that the list changed: adding a tool does.
func (a *agentServer) announce() {
	a.sdk.AddTool(&sdk.Tool{Name: dispatcher, InputSchema: json.RawMessage(`{"type":"object"}`)}, a.dispatch)
}

// bind registers the tools whose arguments a client repeats in HTTP headers (x-mcp-header), so that the SDK compares
// the two before it takes a call.
func (a *agentServer) bind(l *listing) {
	var names []string
	for _, t := range l.headers {
		if err := addTool(a.sdk, t, a.dispatch); err != nil {
			a.owner.options.Logger.Warn("a tool's header annotations are ignored", "tool", t.Name, "error", err)
			continue
		}
		names = append(names, t.Name)
	}
	gone := slices.DeleteFunc(a.bound, func(name string) bool { return slices.Contains(names, name) })
	if len(gone) > 0 {
		a.sdk.RemoveTools(gone...)
	}
	a.bound = names
}

// receive stands in front of the SDK's own handling of a client's messages.
func (a *agentServer) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch r := req.(type) {
		case *sdk.CallToolRequest:
			return a.call(ctx, next, r)
		case *sdk.ListToolsRequest:
			result, err := next(ctx, method, req)
			if err != nil {
				return nil, err
			}
			return a.list(r, result)
		case *sdk.ReadResourceRequest:
			return a.read(ctx, next, r)
		case *sdk.GetPromptRequest:
			return a.get(ctx, next, r)
		case *sdk.ServerRequest[*taskParams]:
			return a.task(method, r)
		case *sdk.ServerRequest[*sdk.InitializeParams]:
			// The SDK begins a session of an earlier protocol then, but goes on to take its client for what it asked for.
			if r.Params != nil {
				r.Params.ProtocolVersion = min(r.Params.ProtocolVersion, lastWithSessions)
			}
		}
		result, err := next(ctx, method, req)
		if err != nil {
			return nil, err
		}
		if method == methodInitialize {
			a.initialized(ctx, next, req, result)
		}
		return a.listShelf(req, result), nil
	}
}

// initialized notes what a new session negotiated, and lets log lines through from "info" until the client says
// otherwise: many clients never do, and would see none.
func (a *agentServer) initialized(ctx context.Context, next sdk.MethodHandler, req sdk.Request, result sdk.Result) {
	session, ok := req.GetSession().(*sdk.ServerSession)
	if !ok {
		return
	}
	if r, ok := result.(*sdk.InitializeResult); ok {
		a.owner.events.negotiated(session, r.ProtocolVersion)
		r.Capabilities.Extensions = nil // of protocols that begin without initialize
	}
	level := &sdk.ServerRequest[*sdk.SetLoggingLevelParams]{Session: session, Params: &sdk.SetLoggingLevelParams{Level: "info"}}
	if _, err := next(ctx, methodSetLevel, level); err != nil {
		a.owner.options.Logger.Warn("the log level of a new session was not set", "error", err)
	}
}

// cancel ends the agent's calls and lets no other begin in its sessions. It waits for nothing.
func (a *agentServer) cancel() {
	a.stop()
	a.owner.events.stopAll(a.agent.Load().Name)
}

// end cancels the agent's calls, closes its sessions and waits for them.
func (a *agentServer) end() {
	a.cancel()
	a.unsubscribeAll()
	var closing sync.WaitGroup
	for session := range a.sdk.Sessions() {
		closing.Go(func() {
			if err := session.Close(); err != nil {
				a.owner.options.Logger.Debug("session closed", "session", session.ID(), "error", err)
			}
		})
	}
	closing.Wait()
	a.unsubscribeAll() // from what a call that was running has just subscribed to
}
