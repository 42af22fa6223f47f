package frontend

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/hermesd/hermesd/runtime/bridge"
	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// maxDepth is how deep the calls of plugins may be nested below an agent's own.
const maxDepth = 4

// host gives a call's provider the way back in: tools that it calls run as its caller, through everything that an agent's
// own calls go through.
func (d *Desk) host(c *Call) *provider.Host {
	h := &provider.Host{}
	if c.Host != nil {
		*h = *c.Host
	}
	h.OnCallTool = func(ctx context.Context, name tool.Name, args json.RawMessage) (*tool.Result, error) {
		return d.nested(ctx, c, name, args)
	}
	h.OnDelegate = func(issuer tool.Name) *provider.Delegate { return d.delegate(c, issuer) }
	return h
}

// nested runs a call that a plugin makes within one of its own.
func (d *Desk) nested(ctx context.Context, outer *Call, name tool.Name, args json.RawMessage) (*tool.Result, error) {
	if outer.depth == maxDepth {
		return nil, tool.Errorf(tool.BadRequest, "%s was not called: plugins call each other %d levels deep already; do not retry", name, maxDepth)
	}
	inner := &Call{
		Agent: outer.Agent, Session: outer.Session, Name: name, Arguments: args, TraceParent: outer.TraceParent,
		Via: tool.ViaPlugin, depth: outer.depth + 1, alone: outer.alone,
	}
	if outer.Host != nil {
		quiet := *outer.Host
		quiet.OnProgress = nil // the caller follows the outer call's
		inner.Host = &quiet
	}
	result, err := d.dispatch(ctx, inner)
	if suspended := (*bridge.Suspended)(nil); errors.As(err, &suspended) {
		err = tool.Errorf(tool.NobodyAsked, "%s needs a human's approval, which a plugin's call cannot ask for here; tell the user", name)
	}
	return result, err
}

// delegate is how a plugin calls tools as the agent after a call of issuer has ended. The agent and what it may use are
// looked up each time: whatever was taken from the agent is taken from the delegate.
func (d *Desk) delegate(c *Call, issuer tool.Name) *provider.Delegate {
	find := func() (*disclosure.Agent, error) {
		agent, ok := d.Agents.ByName(c.Agent.Name)
		if !ok {
			return nil, tool.Errorf(tool.NotGranted, "the agent %q, who delegated this, is gone; do not retry", c.Agent.Name)
		}
		if _, err := d.Disclosure.For(agent).View.Find(issuer); tool.CodeOf(err) == tool.UnknownTool {
			return nil, tool.Errorf(tool.NotGranted, "the agent %q, who delegated this, may no longer use %s; do not retry", agent.Name, issuer)
		}
		return agent, nil
	}
	return &provider.Delegate{
		Check: func() error {
			_, err := find()
			return err
		},
		CallTool: func(ctx context.Context, name tool.Name, args json.RawMessage) (*tool.Result, error) {
			agent, err := find()
			if err != nil {
				return nil, err
			}
			return d.nested(ctx, &Call{Agent: agent, Session: c.Session, depth: c.depth, alone: true}, name, args)
		},
	}
}
