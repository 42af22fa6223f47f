package pipeline

import (
	"context"

	"github.com/hermesd/hermesd/runtime/tool"
)

// accept checks what a provider returned.
func (p *Pipeline) accept(e *Entry, r *tool.Result, limit int) (*tool.Result, error) {
	if r == nil {
		return nil, tool.Errorf(tool.BadAnswer, "%s ran, but its provider returned no result; it may have had effects", e.Call.Tool)
	}
	if limit > 0 && r.Size() > limit {
		return nil, tool.Errorf(tool.ResultTooLarge, "%s ran, but its result of %d bytes is over the limit of %d; ask for less", e.Call.Tool, r.Size(), limit)
	}
	return r, nil
}

// results gives a result that is too big for an agent to whoever keeps such.
func (p *Pipeline) results(ctx context.Context, e *Entry) *tool.Error {
	if p.options.Results == nil || e.out.Result == nil {
		return nil
	}
	r, err := p.options.Results.Fit(ctx, e, e.out.Result)
	if err != nil {
		return err
	}
	e.out.Result = r
	return nil
}
