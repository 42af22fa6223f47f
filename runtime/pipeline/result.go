package pipeline

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/hermesd/hermesd/runtime/tool"
)

// accept checks what a provider returned, and cleans what a third party did. A result that needs no cleaning keeps every
// byte.
func (p *Pipeline) accept(e *Entry, r *tool.Result, limit int) (*tool.Result, *tool.Error) {
	name := e.Call.Tool
	if r == nil {
		return nil, tool.Errorf(tool.BadAnswer, "%s ran, but its provider returned no result; it may have had effects", name)
	}
	if size := r.Size(); limit > 0 && size > limit {
		return nil, tool.Errorf(tool.ResultTooLarge, "%s ran, but its result of %d bytes is over the limit of %d; ask for less", name, size, limit)
	}
	if part := malformed(r); part != "" {
		return nil, tool.Errorf(tool.BadAnswer, "%s ran, but the %s of its result is malformed; it may have had effects, tell the operator", name, part)
	}
	if e.Definition.Source == tool.SourceBuiltin {
		return r, nil
	}
	return clean(r), nil
}

// malformed names the part of a result that is not the JSON it must be, "" if all are.
func malformed(r *tool.Result) string {
	for _, c := range r.Content {
		if !isObject(c) {
			return "content"
		}
	}
	if r.Structured != nil && !json.Valid(r.Structured) {
		return "structured content"
	}
	if r.Meta != nil && !isObject(r.Meta) {
		return "_meta"
	}
	return ""
}

func isObject(raw []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) && json.Valid(raw)
}

// results gives a result that is too big for an agent to whoever keeps such.
func (p *Pipeline) results(ctx context.Context, e *Entry) *tool.Error {
	if p.options.Results == nil || e.out.Result == nil || e.Request.Whole {
		return nil
	}
	r, err := p.options.Results.Fit(ctx, e, e.out.Result)
	if err != nil {
		return err
	}
	e.out.Result = r
	return nil
}
