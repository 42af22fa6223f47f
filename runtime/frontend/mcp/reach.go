//lint:file-ignore SA1019 logging, sampling and roots are deprecated from 2026-07-28, and what the clients before it have

package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// reach is how a running request gets back to the client that made it.
type reach struct {
	ctx     context.Context // of the request: it ties messages to the request's stream
	client  teller          // hears of progress and log lines
	session asker           // asks within the request; nil where only results ask
	version string          // of the protocol
	token   any             // the request's progress token; nil if it wants no progress
	caps    *sdk.ClientCapabilities
	round   round
	log     *slog.Logger

	handover *handover // of a call that may become a task; else nil

	telling sync.RWMutex // held for reading while something is told
	over    bool         // the request is about to be answered: nothing may follow that
}

// teller sends what needs no answer.
type teller interface {
	// ID is the session's; "" where there is none.
	ID() string
	NotifyProgress(context.Context, *sdk.ProgressNotificationParams) error
	Log(context.Context, *sdk.LoggingMessageParams) error
}

// asker asks the client while a request is open.
type asker interface {
	Elicit(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error)
	CreateMessageWithTools(context.Context, *sdk.CreateMessageWithToolsParams) (*sdk.CreateMessageWithToolsResult, error)
	ListRoots(context.Context, *sdk.ListRootsParams) (*sdk.ListRootsResult, error)
}

// round is what a request says about the questions of an earlier one that it continues.
type round struct {
	digest  [sha256.Size]byte // of what is asked for: a state fits nothing else
	state   string            // "" in the first round
	answers sdk.InputResponseMap
}

func newReach[P sdk.Params](ctx context.Context, a *agentServer, req *sdk.ServerRequest[P], token any, round round) *reach {
	caps := req.ClientCapabilities()
	if caps == nil {
		caps = &sdk.ClientCapabilities{}
	}
	return &reach{ctx: ctx, client: req.Session, session: req.Session, version: req.ProtocolVersion(), token: token, caps: caps, round: round, log: a.owner.options.Logger}
}

// newer reports whether the client speaks a version in which a server asks by its result only.
func (r *reach) newer() bool { return r.version >= stateless }

// outlasted reports whether what the request wants done may go on when it is answered: because a question ends it, to be
// taken up by the next one, or because a call becomes a task.
func (r *reach) outlasted() bool {
	asks := r.caps.Elicitation != nil || r.caps.Sampling != nil || r.caps.RootsV2 != nil
	return r.newer() && (asks || r.round.state != "" || r.handover != nil)
}

// host is what the call gets for requests that it can ask within (before 2026-07-28). Functions that the client has no
// capability for are nil.
func (r *reach) host() *provider.Host {
	h := &provider.Host{OnLog: r.sendLog}
	if r.token != nil {
		h.OnProgress = r.sendProgress
	}
	if r.newer() {
		return h
	}
	if r.caps.Elicitation != nil {
		h.OnAsk = r.elicit
	}
	if r.caps.Sampling != nil {
		h.OnSample = r.sample
	}
	if r.caps.RootsV2 != nil {
		h.OnRoots = r.roots
	}
	return h
}

// close ends the telling. It waits for what is being told.
func (r *reach) close() {
	r.telling.Lock()
	defer r.telling.Unlock()
	r.over = true
}

func (r *reach) sendProgress(p tool.Progress) {
	r.telling.RLock()
	defer r.telling.RUnlock()
	if r.token == nil || r.over {
		return
	}
	err := r.client.NotifyProgress(r.ctx, &sdk.ProgressNotificationParams{ProgressToken: r.token, Progress: p.Done, Total: p.Total, Message: p.Note})
	if err != nil {
		r.log.Debug("progress was not delivered", "session", r.client.ID(), "error", err)
	}
}

func (r *reach) sendLog(l tool.LogRecord) {
	r.telling.RLock()
	defer r.telling.RUnlock()
	if r.over {
		return
	}
	err := r.client.Log(r.ctx, &sdk.LoggingMessageParams{Level: sdk.LoggingLevel(l.Level), Logger: l.Logger, Data: l.Data})
	if err != nil {
		r.log.Debug("a log line was not delivered", "session", r.client.ID(), "error", err)
	}
}

// elicit puts a question to the human behind the client while the request is open.
func (r *reach) elicit(ctx context.Context, q provider.Question) (provider.Answer, error) {
	params, refused := r.question(q)
	if refused != nil {
		return provider.Answer{}, refused
	}
	ctx, cancel := r.joined(ctx)
	defer cancel()
	result, err := r.session.Elicit(ctx, params)
	if err != nil {
		return provider.Answer{}, asking(err)
	}
	return answer(result)
}

// sample lets the client's model complete something.
func (r *reach) sample(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	var params sdk.CreateMessageWithToolsParams
	if err := json.Unmarshal(raw, &params); err != nil {
		return nil, tool.Errorf(tool.BadRequest, "the sampling request is not MCP's CreateMessageRequest: %w", err)
	}
	if refused := r.cannotSample(&params); refused != nil {
		return nil, refused
	}
	ctx, cancel := r.joined(ctx)
	defer cancel()
	result, err := r.session.CreateMessageWithTools(ctx, &params)
	if err != nil {
		return nil, asking(err)
	}
	return json.Marshal(result)
}

// cannotSample is why the client's model cannot complete something, or nil.
func (r *reach) cannotSample(q *sdk.CreateMessageWithToolsParams) *tool.Error {
	if len(q.Tools) > 0 && r.caps.Sampling.Tools == nil {
		return tool.Errorf(tool.Unsupported, "the agent's client offers sampling without tools; ask again without them")
	}
	return nil
}

// roots lists the folders that the client works in.
func (r *reach) roots(ctx context.Context) (json.RawMessage, error) {
	ctx, cancel := r.joined(ctx)
	defer cancel()
	result, err := r.session.ListRoots(ctx, nil)
	if err != nil {
		return nil, asking(err)
	}
	return json.Marshal(result)
}

// joined is the request's context, which ties a message to the request's stream, ending with ctx, too.
func (r *reach) joined(ctx context.Context) (context.Context, context.CancelFunc) {
	return join(r.ctx, ctx)
}

// join is a context like first that ends with second, too.
func join(first, second context.Context) (context.Context, context.CancelFunc) {
	joint, cancel := context.WithCancelCause(first)
	stop := context.AfterFunc(second, func() { cancel(context.Cause(second)) })
	return joint, func() { stop(); cancel(nil) }
}

func asking(err error) error {
	return tool.Errorf(tool.Unsupported, "the agent's client did not answer: %w", err)
}

// showsForms reports whether the client can put a form to its human.
func (r *reach) showsForms() bool {
	can := r.caps.Elicitation
	return can != nil && (can.Form != nil || can.URL == nil)
}

// question is a question as MCP has it, or why this client cannot be asked it. The SDK does not check it for newer clients.
func (r *reach) question(q provider.Question) (*sdk.ElicitParams, *tool.Error) {
	params := &sdk.ElicitParams{Mode: "url", Message: q.Message, URL: q.URL, ElicitationID: q.ID}
	if q.URL == "" {
		schema := q.Schema
		if schema == nil {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		params = &sdk.ElicitParams{Mode: "form", Message: q.Message, RequestedSchema: schema}
	}
	return params, r.cannotShow(params)
}

// cannotShow is why the client cannot put a question to its human, or nil.
func (r *reach) cannotShow(q *sdk.ElicitParams) *tool.Error {
	can := r.caps.Elicitation
	link := q.Mode == "url" || q.Mode == "" && q.URL != ""
	switch {
	case can == nil:
		return tool.Errorf(tool.Unsupported, "the agent's client cannot ask a human; continue without an answer or tell the user what is needed")
	case link && can.URL == nil:
		return tool.Errorf(tool.Unsupported, "the agent's client cannot show a link; tell the user to open %s", q.URL).With("url", q.URL)
	case !link && !r.showsForms():
		return tool.Errorf(tool.Unsupported, "the agent's client cannot show a form; tell the user what is needed")
	}
	return nil
}

// input is a request of a server that asks by results, for a client that does so, too, or why this client cannot have it.
func (r *reach) input(in provider.Input) (sdk.InputRequest, *tool.Error) {
	var request sdk.InputRequest
	can := true
	switch in.Method {
	case methodElicit:
		request, can = &sdk.ElicitParams{}, r.caps.Elicitation != nil
	case methodSample:
		request, can = &sdk.CreateMessageWithToolsParams{}, r.caps.Sampling != nil
	case methodRoots:
		request, can = &sdk.ListRootsParams{}, r.caps.RootsV2 != nil
	default:
		return nil, tool.Errorf(tool.Unsupported, "the tool asks for %q, which no client can answer", in.Method)
	}
	if !can {
		return nil, tool.Errorf(tool.Unsupported, "the agent's client cannot answer %s, which the tool needs; tell the user", in.Method)
	}
	if in.Params != nil {
		if err := json.Unmarshal(in.Params, request); err != nil {
			return nil, tool.Errorf(tool.BadAnswer, "the tool's question cannot be read: %w", err)
		}
	}
	switch q := request.(type) {
	case *sdk.ElicitParams:
		return q, r.cannotShow(q)
	case *sdk.CreateMessageWithToolsParams:
		return q, r.cannotSample(q)
	}
	return request, nil
}

func answer(r *sdk.ElicitResult) (provider.Answer, error) {
	a := provider.Answer{Action: r.Action}
	if r.Action == "accept" && r.Content != nil {
		raw, err := json.Marshal(r.Content)
		if err != nil {
			return provider.Answer{}, tool.Errorf(tool.Internal, "the human's answer did not marshal: %w", err)
		}
		a.Content = raw
	}
	return a, nil
}
