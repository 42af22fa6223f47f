package daemon

import (
	"context"

	"github.com/hermesd/hermesd/policy/guard"
	"github.com/hermesd/hermesd/runtime/bridge"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/tool"
)

// callGuard puts the guard where calls pass, and where requests end that never became calls.
type callGuard struct{ *guard.Guard }

func newGuard(cfg *config.Config) (callGuard, error) {
	byAgent := map[string]guard.Limits{}
	for i := range cfg.Agents {
		byAgent[cfg.Agents[i].Name] = limits(&cfg.Agents[i].Guard)
	}
	others := limits(&cfg.Guard)
	g, err := guard.New(&guard.Options{Limits: func(agent string) guard.Limits {
		if l, ok := byAgent[agent]; ok {
			return l
		}
		return others
	}})
	return callGuard{g}, err
}

func limits(g *config.Guard) guard.Limits {
	return guard.Limits{
		CallsPerMinute: g.CallsPerMinute, ConcurrentCalls: g.ConcurrentCalls,
		SameCallWarn: g.SameCallWarn, SameCallBlock: g.SameCallBlock, SameToolWarn: g.SameToolWarn, SameToolBlock: g.SameToolBlock,
	}
}

func guarded(e *pipeline.Entry) *guard.Call {
	return &guard.Call{
		Agent: e.Call.Agent, Session: e.Call.Session, Tool: e.Call.Tool, Arguments: e.Request.Call.Arguments, Definition: e.Definition,
	}
}

// Admit implements the guard of package pipeline.
func (g callGuard) Admit(_ context.Context, e *pipeline.Entry) (func(), *tool.Error) {
	return g.Guard.Admit(guarded(e))
}

// Count implements the guard of package pipeline.
func (g callGuard) Count(e *pipeline.Entry, out *pipeline.Outcome) {
	j := g.Guard.Count(guarded(e), &guard.Outcome{Err: out.Err, IsError: out.Result != nil && out.Result.IsError})
	if j.Err != nil {
		out.Err, out.Result = j.Err, nil
	}
	if j.Note != "" {
		out.Notes = append(out.Notes, j.Note)
	}
}

// malformed stands for the tool of a request that never became a call.
const malformed tool.Name = "malformed request"

// refused counts a request that never became a call: an endless stream of such ends, too.
func (g callGuard) refused(_ context.Context, c *bridge.Caller, refusal *tool.Error) *tool.Error {
	j := g.Guard.Count(&guard.Call{Agent: c.Agent, Session: c.Session, Tool: malformed}, &guard.Outcome{Err: refusal})
	return j.Err
}
