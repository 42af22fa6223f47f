package pipeline

import (
	"context"

	"github.com/hermesd/hermesd/runtime/tool"
)

func (p *Pipeline) rules(ctx context.Context, e *Entry) *tool.Error {
	if p.options.Rules == nil {
		return nil
	}
	e.Decision = p.options.Rules.Decide(ctx, e)
	if e.Decision.Action == Deny {
		return tool.Errorf(tool.DeniedByRule, "%s was not run: denied by the operator's rule %s: %s", e.Call.Tool, e.Decision.Rule, e.Decision.Reason)
	}
	return nil
}
