package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/frontend"
)

// From protocol 2026-07-28 on, a call is one HTTP request that says everything about itself. The SDK makes a session for
// each, and decodes it anew for each thing that it wants to know: more work than all that hermesd does with the call. So a
// call in which everything stands where the protocol wants it is served here. Whatever is unusual about a request, and
// every other method, is the SDK's, which knows the other rules and words the refusals.

// The headers that repeat what a body says (SEP-2243).
const (
	methodHeader = "Mcp-Method"
	nameHeader   = "Mcp-Name"
)

// statelessCall is a tools/call of protocol 2026-07-28.
type statelessCall struct {
	id        json.RawMessage // as the client wrote it
	name      string
	arguments json.RawMessage
	token     json.RawMessage // of its progress; nil if it wants none
	level     sdk.LoggingLevel
	caps      *sdk.ClientCapabilities
	client    string // its name
	session   string // that it names in _meta
}

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
			if call, ok := readStatelessCall(raw); ok && call.name == r.Header.Get(nameHeader) && !a.bindsHeaders(call.name) {
				a.serveCall(w, r, call)
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(raw))
	}
	if _, ok := takeIn(w, r); ok {
		t.without.ServeHTTP(w, r)
	}
}

// plainHeaders reports whether a request's headers are those of an ordinary tools/call.
func plainHeaders(h http.Header) bool {
	accept := strings.Join(h.Values("Accept"), ",")
	return h.Get(versionHeader) == stateless && h.Get(methodHeader) == methodCallTool &&
		h.Get("Content-Type") == "application/json" && h.Get("Last-Event-Id") == "" &&
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

// readStatelessCall reads a tools/call in which every part is there, once and of its type, and nothing else.
func readStatelessCall(body []byte) (*statelessCall, bool) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, false
	}
	var version, method, params, name, meta json.RawMessage
	c := &statelessCall{}
	plain := only(body, map[string]*json.RawMessage{"jsonrpc": &version, "id": &c.id, "method": &method, "params": &params}) &&
		only(params, map[string]*json.RawMessage{"name": &name, "arguments": &c.arguments, "_meta": &meta}) &&
		string(version) == `"2.0"` && string(method) == `"`+methodCallTool+`"` && isID(c.id)
	if !plain {
		return nil, false
	}
	if rawjson.IsNull(c.arguments) {
		c.arguments = nil
	}
	c.name, plain = rawjson.String(name)
	return c, plain && c.readMeta(meta)
}

// only finds the members of an object. It reports whether there are no others, and none twice.
func only(raw json.RawMessage, members map[string]*json.RawMessage) bool {
	plain := true
	return rawjson.Members(raw, func(key string, value json.RawMessage) {
		member, known := members[key]
		if !known || *member != nil {
			plain = false
			return
		}
		*member = value
	}) && plain
}

// isID reports whether a value can be the id of a request, or a progress token: text or an integer. It goes back as it
// came, so that a number that no float64 holds is not rounded.
func isID(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '"' || bytes.IndexFunc(raw, func(r rune) bool { return r != '-' && (r < '0' || r > '9') }) < 0)
}

// readMeta reads what a request says about its client and about the answer that it wants.
func (c *statelessCall) readMeta(raw json.RawMessage) bool {
	var version, info, caps json.RawMessage
	plain := true
	object := rawjson.Members(raw, func(key string, value json.RawMessage) {
		once := func(part *json.RawMessage) {
			plain = plain && *part == nil
			*part = value
		}
		switch key {
		case sdk.MetaKeyProtocolVersion:
			once(&version)
		case sdk.MetaKeyClientInfo:
			once(&info)
		case sdk.MetaKeyClientCapabilities:
			once(&caps)
		case "progressToken":
			once(&c.token)
		case sdk.MetaKeyLogLevel:
			level, _ := rawjson.String(value) // of another type is none, as the SDK has it
			c.level = sdk.LoggingLevel(level)
		case frontend.SessionMeta:
			c.session, _ = rawjson.String(value)
		}
	})
	if !object || !plain || string(version) != `"`+stateless+`"` || c.token != nil && !isID(c.token) {
		return false
	}
	if info != nil {
		var client sdk.Implementation
		if json.Unmarshal(info, &client) != nil {
			return false
		}
		c.client = client.Name
	}
	var known struct {
		sdk.ClientCapabilities
		Roots *sdk.RootCapabilities `json:"roots"` // the SDK's own cannot tell absent from empty
	}
	if rawjson.IsNull(caps) || json.Unmarshal(caps, &known) != nil {
		return false
	}
	c.caps = &known.ClientCapabilities
	c.caps.RootsV2 = known.Roots
	return true
}

// serveCall runs a call and answers its request.
func (a *agentServer) serveCall(w http.ResponseWriter, r *http.Request, c *statelessCall) {
	ctx := r.Context()
	answer := &statelessAnswer{w: w, id: c.id, level: c.level}
	reach := &reach{
		ctx: ctx, client: answer, version: stateless, caps: c.caps, log: a.owner.options.Logger,
		round: round{digest: digestOf(methodCallTool, c.name, c.arguments)},
	}
	if c.token != nil {
		reach.token = c.token
	}
	agent := a.agent.Load()
	result, question, err := a.perform(ctx, reach, &frontend.Call{
		Agent:       agent,
		Session:     a.owner.options.Desk.Session(agent, sessionName("", r.Header, c.session), c.client),
		Name:        c.name,
		Arguments:   c.arguments,
		TraceParent: r.Header.Get(traceHeader),
	})
	reach.close()
	switch {
	case ctx.Err() != nil: // nobody is there to read it
	case err != nil:
		err = answer.refuse(err)
	case question != nil:
		question.Meta = a.owner.identity
		err = answer.complete(&questionResult{question, question.InputRequests, question.RequestState})
	default:
		err = answer.complete(newCallResult(&sdk.CallToolResult{Meta: a.owner.identity}, result, true))
	}
	if err != nil {
		a.owner.options.Logger.Debug("a call was not answered", "tool", c.name, "error", err)
	}
}
