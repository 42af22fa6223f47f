package pipeline

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// maxErrorChars is how much of a provider's error an agent reads; the log has the rest.
const maxErrorChars = 2048

// maxLoggedError bounds that rest, and what only the operator reads, in bytes.
const maxLoggedError = 64 << 10

// maxErrorExtra bounds what a provider's error may say besides its message, as JSON in bytes.
const maxErrorExtra = 16 << 10

// dispatch hands the call to its provider, under its deadline.
func (p *Pipeline) dispatch(ctx context.Context, e *Entry) *tool.Error {
	limit := cmp.Or(e.Definition.Timeout, p.options.Timeout)
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	e.dispatched = true
	req := &provider.Request{
		Call: e.Call, Definition: e.Definition, Host: p.host(e),
		MaxResultBytes: cmp.Or(e.Definition.MaxResultBytes, p.options.MaxResultBytes),
	}
	res, err := e.Provider.Invoke(bounded, req)
	if err != nil {
		return p.failure(ctx, bounded, e, err)
	}
	accepted, fault := p.accept(e, res, req.MaxResultBytes)
	e.out.Result = accepted
	return fault
}

// failure turns a provider's error into what the agent reads. Whose clock ran out decides between cancelled and timeout.
func (p *Pipeline) failure(ctx, bounded context.Context, e *Entry, err error) *tool.Error {
	var known *tool.Error
	switch {
	case errors.As(err, &known):
	case ctx.Err() != nil:
		return tool.Errorf(tool.Cancelled, "%s was cancelled by its caller; it may have had effects", e.Call.Tool)
	case bounded.Err() != nil:
		limit := cmp.Or(e.Definition.Timeout, p.options.Timeout)
		return tool.Errorf(tool.Timeout, "%s did not answer within %s; it may have had effects, look before you repeat it", e.Call.Tool, limit)
	default:
		known = tool.AsError(err)
	}
	return p.bound(e, known)
}

// bound masks secrets in a provider's error and cuts what is too long for an agent. It works on a copy: the provider may
// keep its own.
func (p *Pipeline) bound(e *Entry, err *tool.Error) *tool.Error {
	c := *err
	c.Message, c.Detail = head(c.Message, maxLoggedError), head(c.Detail, maxLoggedError)
	if raw, err := tool.JSON(c.Extra); err != nil || len(raw) > maxErrorExtra {
		c.Extra = nil
		p.options.Logger.Warn("what a provider's error says besides its message was left out: it is too big, or no JSON",
			"call", e.Call.ID, "tool", e.Call.Tool, "bytes", len(raw), "most", maxErrorExtra)
	}
	if e.Definition.Source != tool.SourceBuiltin {
		cleanError(&c)
	}
	if p.options.Mask != nil { // before it is cut: half of a secret is not recognised
		c = *p.concealed(&c)
	}
	if whole := c.Message; utf8.RuneCountInString(whole) > maxErrorChars {
		c.Message = cut(whole, maxErrorChars)
		p.options.Logger.Warn("a provider's error was cut for the agent", "call", e.Call.ID, "tool", e.Call.Tool,
			"error", whole)
	}
	return &c
}

// head keeps n bytes of s.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// cut keeps n characters of s, the last of them telling that there was more.
func cut(s string, n int) string {
	const mark = " … (cut; the operator's log has more)"
	n -= utf8.RuneCountInString(mark)
	for i := range s {
		if n == 0 {
			return s[:i] + mark
		}
		n--
	}
	return s
}
