package pipeline

import (
	"context"

	"github.com/hermesd/hermesd/runtime/tool"
)

func (p *Pipeline) preHooks(ctx context.Context, e *Entry) *tool.Error {
	if p.options.Hooks == nil {
		return nil
	}
	v, err := p.options.Hooks.Before(ctx, e)
	if err != nil {
		return err
	}
	e.Verdict = v
	if v.Action == Deny {
		return tool.Errorf(tool.BlockedByHook, "%s was not run: blocked by the operator: %s", e.Call.Tool, v.Message)
	}
	return nil
}

// postHooks run after a call that was handed to its provider, whatever came of it. Calls that were refused had none.
func (p *Pipeline) postHooks(ctx context.Context, e *Entry) *tool.Error {
	if p.options.Hooks != nil && e.dispatched {
		p.options.Hooks.After(ctx, e, &e.out)
	}
	return nil
}
