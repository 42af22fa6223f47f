package pipeline

import (
	"context"

	"github.com/hermesd/hermesd/runtime/tool"
)

// auditStarted makes the record without which nothing runs.
func (p *Pipeline) auditStarted(ctx context.Context, e *Entry) *tool.Error {
	if p.options.Audit == nil {
		return nil
	}
	if err := p.options.Audit.Started(ctx, e.record(tool.RecordStarted)); err != nil {
		if ctx.Err() != nil {
			return tool.Errorf(tool.Cancelled, "%s was not run: the caller gave up: %w", e.Call.Tool, err)
		}
		return tool.Errorf(tool.AuditUnavailable, "%s was not run: its audit record could not be written; tell the operator: %w", e.Call.Tool, err)
	}
	return nil
}

func (p *Pipeline) auditFinished(_ context.Context, e *Entry) *tool.Error {
	if p.options.Audit == nil {
		return nil
	}
	r := e.record(tool.RecordFinished)
	r.Duration, r.Result = e.out.Duration, e.out.Result
	if e.out.Err != nil {
		r.Code = e.out.Err.Code
	}
	r.Outcome = tool.OutcomeOf(r.Code)
	if r.Code == "" && r.Result != nil && r.Result.IsError {
		r.Outcome = tool.OutcomeError
	}
	p.options.Audit.Finished(r)
	return nil
}

func (e *Entry) record(kind tool.RecordKind) *tool.Record {
	c := e.Call
	r := &tool.Record{
		Kind: kind, CallID: c.ID, Agent: c.Agent, Session: c.Session, Via: c.Via, Tool: c.Tool, Arguments: c.Arguments,
		Rule: e.Decision.Rule, Approval: e.Answer.ID, By: e.Answer.By,
	}
	if d := e.Definition; d != nil {
		r.Source, r.SourceName = d.Source, d.SourceName
	}
	for _, ch := range e.Coerced {
		r.Coerced = append(r.Coerced, ch.Path)
	}
	return r
}
