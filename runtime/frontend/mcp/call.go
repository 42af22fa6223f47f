package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// slot carries a call past the SDK, which knows only the dispatcher, and its result back.
type slot struct {
	req     *sdk.CallToolRequest // as the client sent it
	result  *tool.Result         // nil when the SDK's own result says it all
	interim *interim             // instead of result, while the call goes on
}

type slotKey struct{}

// call sends a call of any name through the dispatcher, and puts the tool's result in the place of the SDK's. (A result
// made here without going through a tool would lack what the newer protocol needs to tell a result from a question.)
func (a *agentServer) call(ctx context.Context, next sdk.MethodHandler, req *sdk.CallToolRequest) (sdk.Result, error) {
	if req.Extra != nil { // over HTTP
		if token := req.Extra.Header.Get(adoptionHeader); token != "" {
			return a.adopt(ctx, req.Session.ID(), token)
		}
	}
	s := &slot{req: req}
	params := *req.Params
	params.Name = dispatcher
	renamed := &sdk.CallToolRequest{Session: req.Session, Params: &params, Extra: req.Extra}
	result, err := next(context.WithValue(ctx, slotKey{}, s), methodCallTool, renamed)
	r, ok := result.(*sdk.CallToolResult)
	switch {
	case err != nil || !ok:
		return result, err
	case s.result != nil:
		return newCallResult(r, s.result, req.ProtocolVersion() >= stateless), nil
	case s.interim != nil:
		return s.interim.result(r), nil
	}
	return r, nil
}

// dispatch is the dispatcher tool.
func (a *agentServer) dispatch(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	s, ok := ctx.Value(slotKey{}).(*slot)
	if !ok {
		return nil, errors.New("a call that did not come through the middleware")
	}
	params := s.req.Params
	this := roundOf(digestOf(methodCallTool, params.Name, params.Arguments), params.RequestState, params.InputResponses)
	reach := newReach(ctx, a, s.req, params.GetProgressToken(), this)
	defer reach.close()
	call := a.decoded(s.req)
	call.Resume = resumed(params.RequestState, params.InputResponses)
	var err error
	if s.result, s.interim, err = a.perform(ctx, reach, call); err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{}, nil
}

// perform runs a call, or goes on with one. It returns the tool's result, or what answers the request while the call goes
// on, or an error of the protocol.
func (a *agentServer) perform(ctx context.Context, reach *reach, call *frontend.Call) (*tool.Result, *interim, error) {
	return reach.performed(serve(ctx, a, reach, a.tries(reach, call)))
}

// performHere is perform for one who can answer from any goroutine; see [serveHere].
func (a *agentServer) performHere(ctx context.Context, reach *reach, call *frontend.Call, answer func(*tool.Result, *interim, error)) {
	serveHere(ctx, a, reach, a.tries(reach, call), func(done outcome[*frontend.Tried], meanwhile *interim) {
		answer(reach.performed(done, meanwhile))
	})
}

// tries is the work of a call.
func (a *agentServer) tries(reach *reach, call *frontend.Call) work[*frontend.Tried] {
	call.Suspendable = reach.suspendable()
	reach.offerTasks(a)
	return func(ctx context.Context, host *provider.Host) (*frontend.Tried, error) {
		call.Host = host
		tried := a.owner.options.Desk.Try(ctx, call)
		reach.handover.end(ctx.Err() != nil, tried)
		return tried, nil
	}
}

// performed is what came of a call's work.
func (r *reach) performed(done outcome[*frontend.Tried], meanwhile *interim) (*tool.Result, *interim, error) {
	switch {
	case meanwhile != nil:
		return nil, meanwhile, nil
	case errors.Is(done.err, errStaleState):
		return nil, nil, done.err
	case done.err != nil:
		return tool.AsError(done.err).Result(), nil, nil
	case done.value.Ask != nil:
		result, question := askFirst(done.value.Ask)
		return result, question, nil
	}
	if r.newer() {
		if refused := missingCapability(done.value.Failure); refused != nil {
			return nil, nil, refused
		}
	}
	return done.value.Result, nil, nil
}

// bounded ends ctx with base, too: with a session, or with the front end.
func bounded(ctx, base context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(base, cancel)
	return ctx, func() { stop(); cancel() }
}

// decoded is a request as the desk wants it.
func (a *agentServer) decoded(req *sdk.CallToolRequest) *frontend.Call {
	agent := a.agent.Load()
	session, trace := sessionOf(a, agent, req)
	return &frontend.Call{
		Agent:       agent,
		Session:     session,
		Name:        req.Params.Name,
		Arguments:   req.Params.Arguments,
		TraceParent: trace,
	}
}

// sessionOf is the session that a request belongs to, and the trace context that it brings.
func sessionOf[P sdk.Params](a *agentServer, agent *disclosure.Agent, req *sdk.ServerRequest[P]) (session, trace string) {
	var header http.Header
	if req.Extra != nil {
		header = req.Extra.Header
	}
	meta, _ := req.Params.GetMeta()[frontend.SessionMeta].(string)
	client := ""
	if info := req.ClientInfo(); info != nil {
		client = info.Name
	}
	return a.owner.options.Desk.Session(agent, sessionName(req.Session.ID(), header, meta), client), header.Get(traceHeader)
}

// traceHeader carries a W3C trace context.
const traceHeader = "Traceparent"

// sessionName is what a request calls its session: the protocol's, else what its header says, else what its _meta says.
func sessionName(protocols string, header http.Header, meta string) string {
	return cmp.Or(protocols, header.Get(frontend.SessionHeader), meta)
}

// questionResult is what the client is to bring along when it asks again. It has no content; the SDK would write null.
type questionResult struct {
	sdk.Result // what the SDK adds: _meta
	requests   sdk.InputRequestMap
	state      string
}

// MarshalJSON implements [json.Marshaler].
func (q *questionResult) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type     string              `json:"resultType"`
		Requests sdk.InputRequestMap `json:"inputRequests"`
		State    string              `json:"requestState,omitempty"`
		Meta     sdk.Meta            `json:"_meta,omitempty"`
	}{"input_required", q.requests, q.state, q.GetMeta()})
}

// callResult is a tool's result on the wire: the content blocks are the provider's bytes, not what the SDK makes of them.
type callResult struct {
	*sdk.CallToolResult // what the SDK adds: _meta
	raw                 json.RawMessage
	meta                json.RawMessage
}

func newCallResult(r *sdk.CallToolResult, t *tool.Result, typed bool) *callResult {
	raw := encodeResult(t, typed)
	if !json.Valid(raw) { // the SDK would not answer at all
		t = tool.Errorf(tool.BadAnswer, "the tool's provider answered something that is no JSON; tell the operator").Result()
		raw = encodeResult(t, typed)
	}
	return &callResult{r, raw, t.Meta}
}

// encodeResult writes a result without its _meta and without the closing brace of the object's end: see MarshalJSON.
func encodeResult(t *tool.Result, typed bool) json.RawMessage {
	b := make([]byte, 0, t.Size()+64)
	b = append(b, `{"content":[`...)
	for i, c := range t.Content {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, c...)
	}
	b = append(b, ']')
	if t.Structured != nil {
		b = append(append(b, `,"structuredContent":`...), t.Structured...)
	}
	if t.IsError {
		b = append(b, `,"isError":true`...)
	}
	if typed {
		b = append(b, `,"resultType":"complete"`...)
	}
	return append(b, '}')
}

// MarshalJSON implements [json.Marshaler].
func (r *callResult) MarshalJSON() ([]byte, error) {
	var meta map[string]any
	if len(r.meta) > 0 {
		var own map[string]json.RawMessage
		if json.Unmarshal(r.meta, &own) == nil {
			meta = make(map[string]any, len(own)+1)
			for k, v := range own {
				meta[k] = v
			}
		}
	}
	for k, v := range r.CallToolResult.Meta {
		if meta == nil {
			meta = map[string]any{}
		}
		meta[k] = v
	}
	if len(meta) == 0 {
		return r.raw, nil
	}
	encoded, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	return withMeta(r.raw, encoded), nil
}

// withMeta adds _meta to an object that has other members and none of that name.
func withMeta(object, meta json.RawMessage) json.RawMessage {
	return slices.Concat(object[:len(object)-1], []byte(`,"_meta":`), meta, []byte("}"))
}
