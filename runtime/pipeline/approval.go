package pipeline

import (
	"context"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// asks reports whether a human has to be asked.
func (e *Entry) asks() bool {
	return e.out.Err == nil && (e.Verdict.Action == Ask || e.Decision.Action == Ask)
}

// approve brings all entries of a batch that need a human to him at once. Where the client has to come back with the
// answer, nothing of the batch runs now: it would run a second time then.
func (p *Pipeline) approve(ctx context.Context, entries []*Entry) {
	var asked []*Entry
	for _, e := range entries {
		if e.asks() {
			asked = append(asked, e)
		}
	}
	if len(asked) == 0 {
		return
	}
	began := time.Now()
	answers := p.ask(ctx, asked)
	for i, e := range asked {
		e.Answer = answers[i]
		if e.Request.Explain {
			e.explain("approval", began, &answers[i].Err)
		}
		e.out.Err = answers[i].Err
		if s := answers[i].Suspend; s != nil {
			suspend(entries, s)
			return
		}
	}
}

func (p *Pipeline) ask(ctx context.Context, asked []*Entry) (answers []Answer) {
	refuse := func(err func(e *Entry) *tool.Error) []Answer {
		list := make([]Answer, len(asked))
		for i, e := range asked {
			list[i].Err = err(e)
		}
		return list
	}
	if p.options.Approvals == nil {
		return refuse(func(e *Entry) *tool.Error {
			return tool.Errorf(tool.NobodyAsked, "%s was not run: it needs a human's approval and nobody can be asked here; go on without it", e.Call.Tool)
		})
	}
	defer func() {
		if v := recover(); v != nil {
			p.options.Logger.Error("asking for approval panicked", "panic", v)
			answers = refuse(func(e *Entry) *tool.Error {
				return tool.Errorf(tool.Internal, "%s was not run: asking for approval failed inside hermesd; tell the operator", e.Call.Tool)
			})
		}
	}()
	answers = p.options.Approvals.Ask(ctx, asked)
	if len(answers) != len(asked) {
		return refuse(func(e *Entry) *tool.Error {
			return tool.Errorf(tool.Internal, "%s was not run: its approval got no answer inside hermesd; tell the operator", e.Call.Tool)
		})
	}
	return answers
}

func suspend(entries []*Entry, payload []byte) {
	for _, e := range entries {
		e.out.Suspended = payload
		if e.out.Err == nil {
			e.out.Err = tool.Errorf(tool.ApprovalPending, "%s has not run yet: a human is being asked", e.Call.Tool)
		}
	}
}

// redeem uses an approval up. The human took his time, so the precondition is looked at again.
func (p *Pipeline) redeem(ctx context.Context, e *Entry) *tool.Error {
	if !e.asks() {
		return nil
	}
	if err := p.precondition(ctx, e); err != nil {
		return err
	}
	if err := checkAgain(ctx, e); err != nil {
		return err
	}
	return p.options.Approvals.Redeem(ctx, e)
}
