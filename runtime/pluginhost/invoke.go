package pluginhost

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// defaultMaxResult bounds a result for which nobody gave a limit, in bytes.
const defaultMaxResult = 64 << 20

// maxRequests is how many host requests of one call are answered at once.
const maxRequests = 8

// Invoke implements provider.Provider.
func (p *Provider) Invoke(ctx context.Context, req *provider.Request) (*tool.Result, error) {
	if req.Definition.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, req.Definition.Timeout)
		defer cancel()
	}
	result, err := p.invoke(ctx, req)
	if tool.CodeOf(err) == tool.NotSent && ctx.Err() == nil { // it met a process that was just going: the next one runs it
		result, err = p.invoke(ctx, req)
	}
	return result, err
}

func (p *Provider) invoke(ctx context.Context, req *provider.Request) (*tool.Result, error) {
	i, release, err := p.supervisor.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	c := &call{provider: p, instance: i, request: req}
	c.maxResult = cmp.Or(req.MaxResultBytes, req.Definition.MaxResultBytes, defaultMaxResult)
	result, err := c.run(ctx)
	switch {
	case err == nil || answered(err):
		p.supervisor.Succeeded()
	case tool.CodeOf(err) == tool.Timeout:
		p.supervisor.Faltered(err)
	}
	return result, err
}

// answered reports whether an error came from the plugin's own code, so that the connection has proved itself.
func answered(err error) bool {
	switch tool.CodeOf(err) {
	case tool.Timeout, tool.Cancelled, tool.NotSent, tool.OutcomeUnknown:
		return false
	}
	return true
}

// call is one running call.
type call struct {
	provider  *Provider
	instance  *instance
	request   *provider.Request
	maxResult int
}

func (c *call) run(ctx context.Context) (*tool.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	requests := &requests{provider: c.provider, instance: c.instance, slots: make(chan struct{}, maxRequests)}
	defer requests.wait()
	defer cancel() // the end of the stream is how a plugin learns that nobody waits any more
	stream, err := c.instance.Invoke(ctx, c.message(ctx))
	if err != nil {
		return nil, c.failure(ctx, err, false)
	}
	collect := &collector{limit: c.maxResult}
	for {
		event, err := stream.Recv()
		if err != nil {
			return nil, c.failure(ctx, err, true)
		}
		switch e := event.GetEvent().(type) {
		case *pb.InvokeResponse_Progress:
			c.request.Host.Progress(tool.Progress{Done: e.Progress.GetDone(), Total: e.Progress.GetTotal(), Note: cut(e.Progress.GetNote())})
		case *pb.InvokeResponse_Log:
			c.log(e.Log)
		case *pb.InvokeResponse_Chunk:
			if err := collect.chunk(e.Chunk); err != nil {
				return nil, c.named(err)
			}
		case *pb.InvokeResponse_HostRequest:
			requests.answer(ctx, e.HostRequest, c.request)
		case *pb.InvokeResponse_Result:
			result, err := collect.finish(e.Result)
			return result, c.named(err)
		case *pb.InvokeResponse_Error:
			return nil, c.ownError(e.Error)
		default:
			return nil, c.named(badAnswer("an event of no known kind"))
		}
	}
}

func (c *call) message(ctx context.Context) *pb.InvokeRequest {
	call := c.request.Call
	m := &pb.InvokeRequest{
		CallId: call.ID, Tool: c.request.Definition.OwnName, Arguments: call.Arguments, Session: call.Session, Agent: call.Agent,
		Traceparent: call.TraceParent, MaxResultBytes: uint64(c.maxResult), Attended: call.Attended, Depth: uint32(call.Depth),
	}
	for _, kind := range c.provider.opts.Grant {
		if capable(c.instance.describe, kind) {
			m.Granted = append(m.Granted, kind)
		}
	}
	if end, ok := ctx.Deadline(); ok {
		m.DeadlineUnixMs = uint64(max(end.UnixMilli(), 1))
	}
	return m
}

func (c *call) log(l *pb.Log) {
	data := json.RawMessage(l.GetData())
	if !json.Valid(data) {
		data, _ = json.Marshal(cut(string(l.GetData()))) // a string always marshals
	}
	c.provider.log.CallEvent(c.request.Call.ID, l.GetLevel(), l.GetLogger(), data)
	c.request.Host.Log(tool.LogRecord{Level: cut(l.GetLevel()), Logger: cut(l.GetLogger()), Data: data})
}

// named puts the tool's name before an error of this package.
func (c *call) named(err error) error {
	var known *tool.Error
	if !errors.As(err, &known) {
		return err
	}
	known.Message = c.request.Definition.Name + ": " + known.Message
	return known
}

// failure says what the end of a stream without an outcome means. sent tells that the call had been handed over.
func (c *call) failure(ctx context.Context, err error, sent bool) error {
	name := c.request.Definition.Name
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		c.instance.doubt()
		return tool.Errorf(tool.Timeout, "%s did not answer in time; it may have had effects, look before you repeat it", name)
	case ctx.Err() != nil:
		return tool.Errorf(tool.Cancelled, "%s was cancelled by its caller; it may have had effects", name)
	case errors.Is(err, io.EOF):
		return c.named(badAnswer("it ended the call without a result"))
	}
	s := status.Convert(err)
	switch {
	case s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "larger than max"):
		return tool.Errorf(tool.ResultTooLarge, "%s sent or got a message larger than %d bytes; ask for less (a filter, a page, a range)",
			name, c.provider.opts.MaxMessageBytes)
	case s.Code() == codes.DeadlineExceeded:
		return tool.Errorf(tool.Timeout, "%s did not answer in time; it may have had effects, look before you repeat it", name)
	case s.Code() == codes.Unimplemented:
		return c.named(badAnswer("its plugin cannot run calls: it does not implement Invoke"))
	case s.Code() == codes.Unavailable || c.instance.lost():
		return c.died(sent, s.Message())
	case s.Code() == codes.Internal && strings.Contains(s.Message(), "unmarshal"):
		return c.named(badAnswer("it answered with bytes that are no message"))
	default:
		return tool.Errorf(tool.ToolFailed, "%s failed: %s", name, oneLine(cut(s.Message())))
	}
}

// died tells whether a call can have run in a process that is gone.
func (c *call) died(sent bool, text string) error {
	name := c.request.Definition.Name
	if c.instance.lost() {
		text = c.instance.Err().Error()
	} else {
		c.instance.doubt()
	}
	if !sent {
		return tool.Errorf(tool.NotSent, "%s was not run: %s; calling again is safe", name, oneLine(text))
	}
	return tool.Errorf(tool.OutcomeUnknown, "%s may or may not have run: %s; check what happened before you call it again", name, oneLine(text))
}

// lost reports whether the process has ended. A connection breaks a moment before its process has been reaped.
func (i *instance) lost() bool {
	timer := time.NewTimer(exitWait)
	defer timer.Stop()
	select {
	case <-i.runner.process.Done():
		return true
	case <-timer.C:
		return false
	}
}

// ownError takes over the plugin's typed error. Codes that only the daemon can give are not believed.
func (c *call) ownError(e *pb.Error) error {
	code := tool.Code(e.GetCode())
	switch code {
	case tool.InvalidArguments, tool.NotAvailable, tool.RateLimited, tool.Timeout, tool.Cancelled, tool.ResultTooLarge, tool.PluginPanic,
		tool.ToolFailed, tool.DownstreamFailed, tool.Unsupported, tool.NotGranted, tool.NotSent, tool.BadConfiguration:
	default:
		code = tool.ToolFailed
	}
	message := e.GetMessage()
	if message == "" {
		message = fmt.Sprintf("%s failed and gave no reason", c.request.Definition.Name)
	}
	err := tool.Errorf(code, "%s", message)
	err.Detail, err.Retryable, err.Pointer = e.GetDetail(), e.GetRetryable(), e.GetPointer()
	switch blame := tool.Blame(e.GetBlame()); blame {
	case tool.BlameCaller, tool.BlamePlugin, tool.BlameDownstream, tool.BlameHost:
		err.Blame = blame
	}
	if len(e.GetExtra()) > 0 {
		var extra map[string]any
		if json.Unmarshal(e.GetExtra(), &extra) == nil {
			err.Extra = extra
		}
	}
	return err
}

func badAnswer(format string, args ...any) *tool.Error {
	return tool.Errorf(tool.BadAnswer, format+"; do not retry, tell the operator", args...)
}
