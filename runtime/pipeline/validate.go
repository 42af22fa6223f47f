package pipeline

import (
	"context"

	"github.com/hermesd/hermesd/runtime/schema"
	"github.com/hermesd/hermesd/runtime/tool"
)

// validate holds the arguments against the tool's schema, and mends them if they only differ in form.
func (p *Pipeline) validate(_ context.Context, e *Entry) *tool.Error {
	fit := p.options.Schemas.Fit(e.Definition, e.Call.Arguments)
	if fit.Faults != nil {
		return misfit(e, fit.Faults)
	}
	e.Call.Arguments, e.Arguments = fit.Arguments, fit.Value
	e.Coerced = append(e.Coerced, fit.Changes...)
	return nil
}

// validateAgain runs the same check on what a hook made of the arguments.
func (p *Pipeline) validateAgain(ctx context.Context, e *Entry) *tool.Error {
	if e.Verdict.Arguments == nil {
		return nil
	}
	e.Call.Arguments = e.Verdict.Arguments
	return p.validate(ctx, e)
}

// misfit is the refusal from which an agent can repair its call in one try.
func misfit(e *Entry, faults []schema.Fault) *tool.Error {
	first := faults[0]
	err := tool.Errorf(tool.InvalidArguments, "%s was not run: %s %s", e.Call.Tool, first.Path, first.Detail)
	hint := "Correct the argument and call again."
	if len(faults) > 1 {
		hint = "Correct all arguments listed in faults, then call again once."
	}
	err.With("path", first.Path).With("constraint", first.Constraint).With("faults", faults).With("hint", hint)
	if len(e.Definition.InputSchema) > 0 {
		err.With("parameters", e.Definition.InputSchema)
	}
	return err
}
