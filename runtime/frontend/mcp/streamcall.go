package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

// servesPlain reports whether a plain call is served without the SDK: one that says everything about itself, or one in a
// session that has begun. (What comes before that is for the SDK to refuse, or to serve after the answer to initialize.)
func (c *streamConn) servesPlain(call *plainCall) bool {
	switch {
	case c.serve == nil:
		return false
	case call.version == "":
		return c.requests.inSession() && c.session.InitializeParams().ProtocolVersion < stateless
	}
	return true
}

// call begins to serve a plain call.
func (c *streamConn) call(ctx context.Context, call *plainCall) error {
	ctx, cancel := context.WithCancel(ctx)
	id := c.ids.key(call.id)
	if err := c.begin(id, &request{cancel: cancel}); err != nil {
		cancel()
		return c.turnAway(call.id, err)
	}
	go c.serve(ctx, c, call, func(message []byte, err error) {
		defer c.requests.calls.Done()
		defer cancel()
		this := c.requests.end(id)
		if err == nil {
			err = c.send(context.Background(), message)
		}
		c.requests.answered(this)
		if err != nil {
			c.log.Debug("a call was not answered", "tool", call.name, "error", err)
		}
	})
	return nil
}

// streamCall is the [plainServer] of an agent's streams.
func (a *agentServer) streamCall(ctx context.Context, c *streamConn, call *plainCall, answer func([]byte, error)) {
	client := ""
	var r *reach
	if call.version == "" {
		began := c.session.InitializeParams()
		r = a.within(ctx, c.session, began)
		if began.ClientInfo != nil {
			client = began.ClientInfo.Name
		}
	} else {
		r, client = call.standalone(ctx, a, c.send), call.from.name
	}
	agent := a.agent.Load()
	from := &frontend.Call{Agent: agent, Session: a.owner.options.Desk.Session(agent, c.id, client)}
	call.ask(r, from)
	a.performHere(ctx, r, from, func(result *tool.Result, meanwhile *interim, err error) {
		message, _, err := a.messageOf(ctx, call, r, result, meanwhile, err)
		answer(message, err)
	})
}

// within is how a call of a session gets back to its client.
func (a *agentServer) within(ctx context.Context, session *sdk.ServerSession, began *sdk.InitializeParams) *reach {
	caps := began.Capabilities
	if caps == nil {
		caps = &sdk.ClientCapabilities{}
	}
	return &reach{ctx: ctx, client: session, session: session, version: began.ProtocolVersion, caps: caps, log: a.owner.options.Logger}
}
