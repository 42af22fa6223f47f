package mcpclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxAgentText bounds what an agent reads of a server's error; the operator reads maxOperatorText.
	maxAgentText, maxOperatorText = 2048, 64 << 10
	// maxSilent calls in a row that time out without a word from the server raise the question whether it lives.
	maxSilent = 3
)

// Invoke implements [provider.Provider]. A call that was not sent, because the connection broke first, is sent once more
// on a new one.
func (p *Provider) Invoke(ctx context.Context, req *provider.Request) (*tool.Result, error) {
	timeout := p.opts.Timeout
	if req.Definition.Timeout > 0 {
		timeout = req.Definition.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	talk := &conversation{}
	if !p.opts.Parallel && !req.Definition.Annotations.IsReadOnly() {
		select {
		case p.turn <- struct{}{}:
			// A server that goes on with a call as a task takes others meanwhile.
			talk.taken = sync.OnceFunc(func() { <-p.turn })
			defer talk.taken()
		case <-ctx.Done():
			return nil, p.waited(ctx)
		}
	}
	result, err := p.once(ctx, req, talk)
	if errors.Is(err, &tool.Error{Code: tool.NotSent}) && ctx.Err() == nil {
		result, err = p.once(ctx, req, talk)
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// waited is the error of a call that never had its turn.
func (p *Provider) waited(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return tool.Errorf(tool.Cancelled, "the call was cancelled while it waited for other calls of server %q; it was not sent", p.opts.Name)
	}
	return tool.Errorf(tool.NotSent, "server %q runs one call at a time and was busy until the deadline; the call was not sent, try again later", p.opts.Name)
}

func (p *Provider) once(ctx context.Context, req *provider.Request, talk *conversation) (*tool.Result, error) {
	s, release, err := p.supervisor.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	before := s.line.heard.Load()
	result, err := s.callTool(ctx, req, talk)
	if err == nil {
		p.succeeded()
		if most := req.MaxResultBytes; most > 0 && result.Size() > most {
			return nil, p.tooLarge(most)
		}
		return result, nil
	}
	var refused *rpcError
	if errors.As(err, &refused) {
		p.succeeded()
		return nil, p.refusal(refused)
	}
	return nil, p.failed(ctx, s, err, s.line.heard.Load() == before)
}

// succeeded notes an exchange that worked, whatever the server answered.
func (p *Provider) succeeded() {
	p.silent.Store(0)
	p.supervisor.Succeeded()
}

// failed translates why a request has no answer. silent says that the server said nothing at all meanwhile.
func (p *Provider) failed(ctx context.Context, s *session, err error, silent bool) error {
	var broken *brokenError
	switch {
	case errors.As(err, &broken):
		if !broken.sent && s.line.ending() {
			p.awaitEnd(ctx, s)
		}
		return p.fault(broken)
	case ctx.Err() != nil:
		p.noteSilence(ctx, s, silent)
		err := p.outOfTime(ctx)
		if err.Code == tool.Timeout {
			p.supervisor.Faltered(err)
		}
		return err
	default:
		return tool.AsError(err)
	}
}

// awaitEnd waits until a session that has broken is gone, so that the next try gets another.
func (p *Provider) awaitEnd(ctx context.Context, s *session) {
	select {
	case <-s.Done():
	case <-ctx.Done():
	}
}

// noteSilence counts calls in a row that ran into their deadline while the server said nothing at all. A server may be
// busy, so one of them proves nothing.
func (p *Provider) noteSilence(ctx context.Context, s *session, silent bool) {
	switch {
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
	case !silent:
		p.silent.Store(0)
	case p.silent.Add(1) >= maxSilent:
		p.silent.Store(0)
		s.suspect(fmt.Errorf("the server has not said a word during %d calls and does not answer a ping", maxSilent))
	}
}

func (p *Provider) outOfTime(ctx context.Context) *tool.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return tool.Errorf(tool.Timeout, "server %q did not answer in time; the call may have had effects, check before you repeat it: %w", p.opts.Name, ctx.Err())
	}
	return tool.Errorf(tool.Cancelled, "the call was cancelled; server %q was told so: %w", p.opts.Name, ctx.Err())
}

// refusal translates a JSON-RPC error of the server.
func (p *Provider) refusal(e *rpcError) *tool.Error {
	code := tool.ToolFailed
	if e.code == jsonrpc.CodeInvalidParams {
		code = tool.InvalidArguments
	}
	text := p.opts.Mask(cmp.Or(e.message, "no reason given")) // before it is cut: half of a secret is not recognised
	err := tool.Errorf(code, "server %q refused the call: %s", p.opts.Name, bounded(text, maxAgentText))
	if e.task {
		err = tool.Errorf(code, "the task on server %q failed: %s", p.opts.Name, bounded(text, maxAgentText)).With("task_error", e.wire(text))
	}
	if e.code == mcp.CodeMissingRequiredClientCapabilities {
		err.Code = tool.Unsupported
		rawjson.Members(e.data, func(key string, value json.RawMessage) {
			if key == "requiredCapabilities" && len(value) <= maxAgentText {
				err = err.With("required_capabilities", value)
			}
		})
	}
	detail := fmt.Sprintf("JSON-RPC error %d: %s", e.code, text)
	if !rawjson.IsNull(e.data) {
		detail += "; data: " + string(e.data)
	}
	return err.WithDetail("%s", bounded(detail, maxOperatorText))
}

// wire is the error, with a text instead of its message, as a caller may pass it on: without data that are too much for that.
func (e *rpcError) wire(text string) *jsonrpc.Error {
	w := &jsonrpc.Error{Code: e.code, Message: bounded(text, maxAgentText)}
	if len(e.data) <= maxAgentText {
		w.Data = e.data
	}
	return w
}

// fault translates a fault of the connection.
func (p *Provider) fault(e *brokenError) *tool.Error {
	cause := bounded(e.cause.Error(), maxAgentText)
	var large *tooLargeError
	var status *statusError
	switch {
	case e.sent && errors.As(e.cause, &large):
		return p.tooLarge(large.most)
	case !e.sent && errors.As(e.cause, &status):
		return tool.Errorf(tool.DownstreamFailed, "server %q did not take the call: %s; it did not run", p.opts.Name, cause)
	case !e.sent:
		return tool.Errorf(tool.NotSent, "the connection to server %q broke before the call was sent (%s); it did not run, try again", p.opts.Name, cause)
	default:
		return tool.Errorf(tool.OutcomeUnknown, "the connection to server %q broke during the call (%s); it may or may not have run, check before you repeat it", p.opts.Name, cause)
	}
}

func (p *Provider) tooLarge(most int) *tool.Error {
	return tool.Errorf(tool.ResultTooLarge, "the result is bigger than %d bytes; ask for less, for example by a filter or a page", most)
}

// callTool runs tools/call.
func (s *session) callTool(ctx context.Context, req *provider.Request, talk *conversation) (*tool.Result, error) {
	r := &request{method: "tools/call", name: req.Definition.OwnName, of: req.Call, host: req.Host}
	if s.modern {
		if wanted := (*s.p.params.Load())[r.name]; wanted != nil {
			r.headers = headersFor(wanted, req.Call.Arguments)
		}
		if req.Host != nil && req.Host.OnLog != nil {
			r.extra = `"` + mcp.MetaKeyLogLevel + `":"info",`
		}
	}
	r.params = func(b *bytes.Buffer) error { return writeCall(b, req) }
	o, err := s.converse(ctx, r, talk, readResult)
	if err != nil {
		return nil, err
	}
	return &o.result, nil
}

// writeCall writes the params of tools/call.
func writeCall(b *bytes.Buffer, req *provider.Request) error {
	b.WriteString(`"name":`)
	writeString(b, req.Definition.OwnName)
	b.WriteString(`,"arguments":`)
	if rawjson.IsNull(req.Call.Arguments) {
		b.WriteString("{}")
	} else if err := json.Compact(b, req.Call.Arguments); err != nil {
		return tool.Errorf(tool.InvalidArguments, "the arguments are not JSON: %w", err)
	}
	return nil
}
