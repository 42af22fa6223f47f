package pipeline

import (
	"bytes"
	"encoding/json"

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
	return rewritten(extra, func(raw []byte) []byte { return []byte(p.options.Mask(string(raw))) })
}

// rewritten is what an error says besides its message, changed as JSON.
func rewritten(extra map[string]any, change func([]byte) []byte) map[string]any {
	raw, err := tool.JSON(extra)
	if err != nil {
		return nil // the agent would not get it either
	}
	changed := change(raw)
	if bytes.Equal(changed, raw) {
		return extra
	}
	var again map[string]any
	d := json.NewDecoder(bytes.NewReader(changed))
	d.UseNumber()
	if d.Decode(&again) != nil {
		return nil // a number was a secret, say
	}
	return again
}

// host is what a running call tells and asks: cleaned where it is a third party's, and with secrets masked in what it tells.
func (p *Pipeline) host(e *Entry) *provider.Host {
	h := p.maskedHost(e.Request.Host)
	if h == nil || e.Definition.Source == tool.SourceBuiltin {
		return h
	}
	return cleanHost(h)
}

// maskedHost masks secrets in progress and log events.
func (p *Pipeline) maskedHost(h *provider.Host) *provider.Host {
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
