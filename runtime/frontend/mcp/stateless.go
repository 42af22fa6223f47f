package mcp

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/hermesd/hermesd/runtime/frontend"
)

// From protocol 2026-07-28 on, a call is one HTTP request that says everything about itself, also in its headers. The SDK
// makes a session for each. A plain call is served here instead.

// The headers that repeat what a body says (SEP-2243).
const (
	methodHeader = "Mcp-Method"
	nameHeader   = "Mcp-Name"
)

// serveStateless serves a request without a session.
func (t *router) serveStateless(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		t.without.ServeHTTP(w, r) // which says what is wrong
		return
	}
	if plainHeaders(r.Header) {
		raw, ok := frontend.ReadBody(w, r)
		if !ok {
			return
		}
		if a := t.server.server(frontend.AgentOf(r.Context())); a != nil {
			if call, ok := readPlainCall(raw, &t.last); ok && call.version == stateless && call.name == r.Header.Get(nameHeader) && !a.bindsHeaders(call.name) {
				a.serveCall(w, r, call)
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(raw))
	}
	if body, ok := takeIn(w, r); ok && namesTask(w, r.Header, body) {
		t.without.ServeHTTP(exactly(w, r, body, newExactIDs()), r)
	}
}

// plainHeaders reports whether a request's headers are those of an ordinary tools/call.
func plainHeaders(h http.Header) bool {
	return h.Get(versionHeader) == stateless && h.Get(methodHeader) == methodCallTool && ordinaryHeaders(h)
}

// ordinaryHeaders reports whether what every POST says in its headers is said there in the usual words.
func ordinaryHeaders(h http.Header) bool {
	accept := strings.Join(h.Values("Accept"), ",")
	return h.Get("Content-Type") == "application/json" && len(h.Values("Last-Event-Id")) == 0 &&
		strings.Contains(accept, "application/json") && strings.Contains(accept, "text/event-stream")
}

// bindsHeaders reports whether arguments of a tool are repeated in headers, which the SDK compares.
func (a *agentServer) bindsHeaders(name string) bool {
	for _, t := range a.current().headers {
		if t.Name == name {
			return true
		}
	}
	return false
}

// serveCall runs a call and answers its request.
func (a *agentServer) serveCall(w http.ResponseWriter, r *http.Request, c *plainCall) {
	ctx := r.Context()
	answer := &statelessAnswer{w: w}
	agent := a.agent.Load()
	message, refused, err := a.servePlain(ctx, c, c.standalone(ctx, a, answer.tell), &frontend.Call{
		Agent:       agent,
		Session:     a.owner.options.Desk.Session(agent, sessionName("", r.Header, c.session), c.from.name),
		TraceParent: r.Header.Get(traceHeader),
	})
	if err == nil {
		err = answer.end(refused, message)
	}
	if err != nil {
		a.owner.options.Logger.Debug("a call was not answered", "tool", c.name, "error", err)
	}
}
