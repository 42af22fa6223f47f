package pipeline

import (
	"context"

	"github.com/hermesd/hermesd/runtime/tool"
)

func (p *Pipeline) admit(ctx context.Context, e *Entry) *tool.Error {
	if p.options.Guard == nil {
		return nil
	}
	leave, err := p.options.Guard.Admit(ctx, e)
	e.leave = leave
	return err
}

// count tells the guard of every end, so that an endless stream of refused calls ends, too.
func (p *Pipeline) count(_ context.Context, e *Entry) *tool.Error {
	if e.leave != nil {
		e.leave()
	}
	if p.options.Guard != nil {
		p.options.Guard.Count(e, &e.out)
	}
	return nil
}
