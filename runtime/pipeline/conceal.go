package pipeline

import (
	"encoding/json"
	"strings"

	"github.com/hermesd/hermesd/internal/redact"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// conceal masks secrets in what an entry says besides its result: its error, whichever stage made it, and its steps. It
// works on copies, since others may hold the same error.
func (p *Pipeline) conceal(e *Entry) {
	if p.options.Mask == nil {
		return
	}
	if e.out.Err != nil {
		e.out.Err = p.concealed(e.out.Err)
	}
	for i := range e.out.Steps {
		step := &e.out.Steps[i]
		step.Note = p.options.Mask(step.Note)
	}
}

func (p *Pipeline) concealed(err *tool.Error) *tool.Error {
	mask := p.options.Mask
	c := *err
	c.Message, c.Detail, c.Pointer = mask(c.Message), mask(c.Detail), mask(c.Pointer)
	c.Extra = p.concealedExtra(c.Extra)
	return &c
}

func (p *Pipeline) concealedExtra(extra map[string]any) map[string]any {
	if len(extra) == 0 {
		return extra
	}
	raw, err := tool.JSON(extra)
	if err != nil {
		return nil // the agent would not get it either
	}
	masked := p.options.Mask(string(raw))
	if masked == string(raw) {
		return extra
	}
	var again map[string]any
	d := json.NewDecoder(strings.NewReader(masked))
	d.UseNumber()
	if d.Decode(&again) != nil {
		return nil // a number was a secret, say
	}
	return again
}

// host is what a running call tells and asks, with secrets masked in what it tells: progress and log events.
func (p *Pipeline) host(h *provider.Host) *provider.Host {
	mask := p.options.Mask
	if h == nil || mask == nil {
		return h
	}
	c := *h
	if c.OnProgress != nil {
		c.OnProgress = func(step tool.Progress) {
			step.Note = mask(step.Note)
			h.OnProgress(step)
		}
	}
	if c.OnLog != nil {
		c.OnLog = func(r tool.LogRecord) {
			r.Logger, r.Data = mask(r.Logger), redact.JSON(r.Data, mask)
			h.OnLog(r)
		}
	}
	return &c
}
