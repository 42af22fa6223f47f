//lint:file-ignore SA1019 logging, sampling and roots are deprecated from 2026-07-28, and what the clients before it have

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend"
)

// In a session over HTTP (up to 2025-11-25) a plain call begins without the SDK. Most calls end soon and say nothing before:
// their request is answered with one document. What is said before the answer belongs on the request's own stream of events,
// and streams are the SDK's, with the numbers of their events, the clients that take one up again, and the level of log lines.
// So once a call has something to say its request goes to the SDK, as it came but for a token in a header of ours, and what
// the SDK begins for it is not another call: it adopts the one that runs.

// adoptionHeader carries the token of a running call past the SDK. A client's own is taken out of every request.
const adoptionHeader = "Hermesd-Running-Call"

var (
	errNoStream = errors.New("the client has gone before its request had a stream")
	errNotHere  = errors.New("the call of this request does not run any more")
	errBroken   = errors.New("the call failed inside hermesd; tell the operator")
)

// sessionCall is a call of a session that began without the SDK. Its client is told and asked through it.
type sessionCall struct {
	*plainCall
	server  *agentServer
	client  *sdk.ServerSession
	ctx     context.Context // of the call: its request may end before
	request request         // it is open under key
	key     any

	adopted, left, done chan struct{} // see adopt, leave and [sessionCalls.end]
	wanting, leaving    sync.Once

	upgrade func()          // hands the request to the SDK, unless it is too late
	stream  context.Context // of the SDK's request, after adopted: it ties messages to the request's stream

	answer  json.RawMessage // after done: the result, or the error of the protocol that refused is
	refused *jsonrpc.Error
	err     error // instead of an answer; errBroken if the call panicked

	// The session's [sessionCalls] guards these.
	ended, handed bool
	token         string        // of what is handed over
	served        chan struct{} // closed when the SDK has served the request
	failure       any           // what it panicked with, after served
}

// newSessionCall is a call that outlives ctx, and ends at the latest with its session.
func newSessionCall(ctx context.Context, a *agentServer, s *liveSession, call *plainCall) *sessionCall {
	c := &sessionCall{
		plainCall: call, server: a, client: s.client, key: s.ids.key(call.id),
		adopted: make(chan struct{}), left: make(chan struct{}), done: make(chan struct{}), err: errBroken,
	}
	c.ctx, c.request.cancel = bounded(context.WithoutCancel(ctx), s.base)
	c.request.release = c.leave
	return c
}

// run runs the call. One that was cancelled has an answer, too, as the SDK answers it.
func (c *sessionCall) run(from *frontend.Call) {
	r := c.server.within(c.ctx, c.client, c.client.InitializeParams())
	r.client, r.session = c, c
	if c.plainCall.token != nil {
		r.token = c.plainCall.token
	}
	result, meanwhile, err := c.server.perform(c.ctx, r, from)
	r.close()
	c.answer, c.refused, c.err = c.server.answerOf(r, result, meanwhile, err)
}

// want asks for a stream: the call has something to say, or takes its time.
func (c *sessionCall) want() { c.wanting.Do(c.upgrade) }

// leave notes that there will be no stream, or none any more: the client has gone, or its request is answered.
func (c *sessionCall) leave() { c.leaving.Do(func() { close(c.left) }) }

// adopt lets the call speak on the stream of the SDK's request whose context this is, and returns how the call ended. It
// is called once at most.
func (c *sessionCall) adopt(stream context.Context) (sdk.Result, error) {
	defer context.AfterFunc(stream, c.request.cancel)()
	c.stream = stream
	close(c.adopted)
	<-c.done
	switch {
	case c.err != nil:
		return nil, c.err
	case c.refused != nil:
		return nil, c.refused
	}
	return &adoptedResult{&sdk.CallToolResult{}, c.answer}, nil
}

// adopt answers the SDK's request that a running call was handed to with that call's result.
func (a *agentServer) adopt(ctx context.Context, sessionID, token string) (sdk.Result, error) {
	c := a.owner.events.adopted(sessionID, token)
	if c == nil {
		return nil, errNotHere
	}
	return c.adopt(ctx)
}

// adoptedResult is a call's result as it would have been answered without the SDK.
type adoptedResult struct {
	*sdk.CallToolResult
	raw json.RawMessage
}

// MarshalJSON implements [json.Marshaler].
func (r *adoptedResult) MarshalJSON() ([]byte, error) { return r.raw, nil }

// tied waits until the call's request has a stream. The context that it returns is tied to that and ends with ctx.
func (c *sessionCall) tied(ctx context.Context) (context.Context, context.CancelFunc, error) {
	c.want()
	select {
	case <-c.adopted:
		tied, release := join(c.stream, ctx)
		return tied, release, nil
	case <-c.left:
		return nil, nil, errNoStream
	case <-c.ctx.Done():
		return nil, nil, context.Cause(c.ctx)
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

// onStream sends something on the stream of a call's request.
func onStream[P, R any](ctx context.Context, c *sessionCall, send func(context.Context, P) (R, error), params P) (R, error) {
	ctx, release, err := c.tied(ctx)
	if err != nil {
		var none R
		return none, err
	}
	defer release()
	return send(ctx, params)
}

// ID is the session's.
func (c *sessionCall) ID() string { return c.client.ID() }

// NotifyProgress implements [teller].
func (c *sessionCall) NotifyProgress(ctx context.Context, p *sdk.ProgressNotificationParams) error {
	_, err := onStream(ctx, c, unanswered(c.client.NotifyProgress), p)
	return err
}

// Log implements [teller].
func (c *sessionCall) Log(ctx context.Context, p *sdk.LoggingMessageParams) error {
	_, err := onStream(ctx, c, unanswered(c.client.Log), p)
	return err
}

func unanswered[P any](send func(context.Context, P) error) func(context.Context, P) (struct{}, error) {
	return func(ctx context.Context, params P) (struct{}, error) { return struct{}{}, send(ctx, params) }
}

// Elicit implements [asker].
func (c *sessionCall) Elicit(ctx context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	return onStream(ctx, c, c.client.Elicit, p)
}

// CreateMessageWithTools implements [asker].
func (c *sessionCall) CreateMessageWithTools(ctx context.Context, p *sdk.CreateMessageWithToolsParams) (*sdk.CreateMessageWithToolsResult, error) {
	return onStream(ctx, c, c.client.CreateMessageWithTools, p)
}

// ListRoots implements [asker].
func (c *sessionCall) ListRoots(ctx context.Context, p *sdk.ListRootsParams) (*sdk.ListRootsResult, error) {
	return onStream(ctx, c, c.client.ListRoots, p)
}

var (
	_ teller = (*sessionCall)(nil)
	_ asker  = (*sessionCall)(nil)
)
