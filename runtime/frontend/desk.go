// Package frontend is what all front ends share: who a caller is, which session a request belongs to, the one way from a
// decoded call to the bridge, and the checks that every HTTP request passes before anything is decoded.
//
// Only front ends know transports. A front end decodes, asks the [Desk], and encodes what comes back.
package frontend

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/hermesd/hermesd/runtime/bridge"
	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Agents knows the configured principals. The same name keeps the same pointer until the configuration changes.
type Agents interface {
	// ByToken finds the agent of a bearer token; the error is what the client reads.
	ByToken(token string) (*disclosure.Agent, error)
	// Local is the implicit agent of the operator's own programs, for a connection whose other end belongs to peerUID
	// (known is false where that could not be told).
	Local(peerUID int, known bool) (*disclosure.Agent, error)
	// ByName finds an agent by its name.
	ByName(name string) (*disclosure.Agent, bool)
}

// Desk is where every front end hands in what agents want. All fields but Sessions are required.
type Desk struct {
	Agents     Agents
	Disclosure *disclosure.Disclosure
	Bridge     *bridge.Bridge
	// Pipeline is what [Desk.Fetch] runs requests through.
	Pipeline Pipeline
	// Sessions gives a session to requests that name none. The zero value works.
	Sessions Sessions

	drain   drain
	methods methods
}

// Call is one call as a front end decoded it: of a bridge tool, or of a tool by its own name.
type Call struct {
	Agent *disclosure.Agent
	// Session is the conversation, as [Desk.Session] gives it.
	Session   string
	Name      string
	Arguments json.RawMessage // nil is {}
	// Host is how the running call reaches its caller; nil if it cannot.
	Host *provider.Host
	// TraceParent is the W3C trace context of the caller ("" if none).
	TraceParent string
	// Via overrides how the call is said to have arrived ("": the bridge decides).
	Via tool.Via
	// Suspendable clients take a question as their answer and bring the call back with Resume, see [Desk.Try].
	Suspendable bool
	Resume      string
	// Explain hears what the pipeline did with the call. It may be nil.
	Explain func([]pipeline.Outcome)

	depth int  // how many calls of plugins it is nested in
	alone bool // it belongs to no conversation: there is no human to ask
}

// Session is the full id of an agent's session: the one that the request names, else the agent's current one with this
// client.
func (d *Desk) Session(agent *disclosure.Agent, named, client string) string {
	return d.Sessions.ID(agent.Name, named, client)
}

// Caller is who calls, as the bridge wants it.
func (d *Desk) Caller(c *Call) *bridge.Caller { return d.caller(c, d.Disclosure.For(c.Agent)) }

func (d *Desk) caller(c *Call, shown *disclosure.Assembly) *bridge.Caller {
	s := &shown.Settings
	from := &bridge.Caller{
		Agent: c.Agent.Name, Session: c.Session, Attended: c.Agent.Attended && !c.alone,
		View: shown.View, Searchable: shown.Searchable, Shown: shown, Names: s.Names,
		DirectCall: s.DirectCall, DefaultLimit: s.SearchDefaultLimit, MaxLimit: s.MaxSearchLimit,
		Host: d.host(c), TraceParent: c.TraceParent, Via: c.Via, Depth: c.depth, Resume: c.Resume, Suspendable: c.Suspendable, Explain: c.Explain,
	}
	if c.depth > 0 {
		from.DirectCall = "" // a plugin has no list that a tool could stand in
	}
	return from
}

// Dispatch runs one call to its end. Whatever goes wrong is a result that tells the agent what to do next; there is no
// name that "does not exist" without a hint.
func (d *Desk) Dispatch(ctx context.Context, c *Call) *tool.Result {
	result, err := d.dispatch(ctx, c)
	return final(c.Name, result, err)
}

// Tried is how a call ended that may be brought back: with a result, or with what a human is to be asked first.
type Tried struct {
	Result *tool.Result
	// Failure is the error that Result tells of; nil where Result is a tool's own, which may look like one.
	Failure *tool.Error
	// Ask is in the form of the approval broker; nil unless nothing ran and there is no result.
	Ask json.RawMessage
}

// Try is Dispatch for a client that can bring the call back: where a human has to be asked first, nothing runs and what to
// ask is returned instead.
func (d *Desk) Try(ctx context.Context, c *Call) *Tried {
	result, err := d.dispatch(ctx, c)
	if suspended := (*bridge.Suspended)(nil); errors.As(err, &suspended) && c.Suspendable {
		return &Tried{Ask: suspended.Payload}
	}
	t := &Tried{Result: final(c.Name, result, err)}
	errors.As(err, &t.Failure)
	return t
}

// DispatchAll runs calls that one request brought together, and gives one result for each. All are the agent's, the
// session's and the host's of the first.
func (d *Desk) DispatchAll(ctx context.Context, calls []*Call) []*tool.Result {
	if len(calls) == 0 {
		return nil
	}
	if err := d.drain.enter(calls[0].depth > 0); err != nil {
		results := make([]*tool.Result, len(calls))
		for i := range results {
			results[i] = err.Result()
		}
		return results
	}
	defer d.drain.leave()
	shown := d.Disclosure.For(calls[0].Agent)
	items := make([]bridge.Item, len(calls))
	for i, c := range calls {
		kind, _ := shown.Bridge(c.Name)
		items[i] = bridge.Item{Kind: kind, Name: c.Name, Arguments: c.arguments()}
	}
	results := make([]*tool.Result, len(calls))
	for i, a := range d.Bridge.All(ctx, d.caller(calls[0], shown), items) {
		results[i] = final(calls[i].Name, a.Result, a.Err)
	}
	return results
}

func final(name string, result *tool.Result, err error) *tool.Result {
	if err == nil {
		return result
	}
	if suspended := (*bridge.Suspended)(nil); errors.As(err, &suspended) {
		err = tool.Errorf(tool.NobodyAsked, "%s needs a human's approval and this client has no way to ask for it; tell the user", name)
	}
	return tool.AsError(err).Result()
}

func (c *Call) arguments() json.RawMessage {
	if len(c.Arguments) == 0 {
		return json.RawMessage("{}")
	}
	return c.Arguments
}

func (d *Desk) dispatch(ctx context.Context, c *Call) (*tool.Result, error) {
	if err := d.drain.enter(c.depth > 0); err != nil {
		return nil, err
	}
	defer d.drain.leave()
	args := c.arguments()
	shown := d.Disclosure.For(c.Agent)
	from := d.caller(c, shown)
	switch kind, _ := shown.Bridge(c.Name); kind {
	case catalog.BridgeSearch:
		return d.Bridge.Search(ctx, from, args)
	case catalog.BridgeDescribe:
		return d.Bridge.Describe(ctx, from, args)
	case catalog.BridgeCall:
		return d.Bridge.Call(ctx, from, args)
	default:
		return d.Bridge.Direct(ctx, from, c.Name, args)
	}
}
