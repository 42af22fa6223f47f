package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

const (
	// envelope is what a message may hold besides the bytes that are counted.
	envelope = 4 << 10
	// maxLogBytes bounds one log line of a call.
	maxLogBytes = 64 << 10
	// maxErrorBytes bounds each text of an error.
	maxErrorBytes = 64 << 10
)

// Call is one running call.
type Call struct {
	Request *pb.InvokeRequest
	server  *Server
	ctx     context.Context // of the stream

	mu     sync.Mutex // one Send at a time, none after the end
	stream grpc.ServerStreamingServer[pb.InvokeResponse]
	ended  bool
	fault  error // of the first Send that failed: the host is gone
}

// Invoke implements the service.
func (s *Server) Invoke(req *pb.InvokeRequest, stream grpc.ServerStreamingServer[pb.InvokeResponse]) error {
	c := &Call{Request: req, server: s, ctx: stream.Context(), stream: stream}
	if !s.begin() {
		return c.fail(&pb.Error{Code: "not_sent", Blame: "host", Retryable: true,
			Message: "the plugin is draining and takes no new calls; this one was not run, so that calling again is safe"})
	}
	defer s.end()
	ctx := context.WithValue(s.with(c.ctx), callKey{}, c)
	if ms := req.GetDeadlineUnixMs(); ms > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, time.UnixMilli(int64(ms)))
		defer cancel()
	}
	list, err := s.list(ctx)
	if err != nil {
		return c.fail(&pb.Error{Code: "tool_failed", Blame: "plugin", Message: "the plugin cannot list its tools: " + err.Error()})
	}
	t := list.byName[req.GetTool()]
	if t == nil {
		return c.fail(&pb.Error{Code: "unknown_tool", Blame: "host", Message: fmt.Sprintf("the plugin has no tool %q", req.GetTool())})
	}
	result, failure := c.run(ctx, t)
	if failure != nil {
		return c.fail(failure)
	}
	return c.finish(t, result)
}

func (c *Call) run(ctx context.Context, t *Tool) (result *pb.Result, failure *pb.Error) {
	if p := contain(func() { result, failure = t.Invoke(ctx, c) }); p != nil {
		c.server.plugin.Logger.Error("a tool panicked", "tool", c.Request.GetTool(), "call", c.Request.GetCallId(),
			"panic", p.Error(), "stack", p.stack)
		return nil, &pb.Error{Code: "plugin_panic", Blame: "plugin",
			Message: fmt.Sprintf("the tool's code panicked: %v; other arguments may work, and its author should know", p),
			Detail:  p.stack}
	}
	return result, failure
}

// Progress tells the caller how far the call is.
func (c *Call) Progress(done, total float64, note string) {
	c.send(&pb.InvokeResponse{Event: &pb.InvokeResponse_Progress{
		Progress: &pb.Progress{Done: done, Total: total, Note: clean(note)},
	}})
}

// Log sends a line to the caller. data is JSON; a line that is too long is replaced by a remark.
func (c *Call) Log(level, logger string, data []byte) {
	c.send(&pb.InvokeResponse{Event: &pb.InvokeResponse_Log{Log: logLine(level, logger, data)}})
}

func logLine(level, logger string, data []byte) *pb.Log {
	if len(data) > maxLogBytes {
		data = fmt.Appendf(nil, "%q", fmt.Sprintf("a log line of %d bytes was left out: the limit is %d", len(data), maxLogBytes))
	}
	return &pb.Log{Level: level, Logger: clean(logger), Data: data}
}

// send sends one event while the call runs. A failure means that the host is gone, which also cancels the context; it is
// kept and becomes the RPC's error.
func (c *Call) send(e *pb.InvokeResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.fault != nil {
		return
	}
	c.fault = c.stream.Send(e)
}

// close sends the last event. What a goroutine of the tool says later is dropped: the stream has ended.
func (c *Call) close(e *pb.InvokeResponse) error {
	c.send(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	return c.fault
}

func (c *Call) fail(e *pb.Error) error {
	e.Message, e.Detail = limitText(clean(e.GetMessage())), limitText(clean(e.GetDetail()))
	e.Pointer = clean(e.GetPointer())
	if len(e.GetExtra()) > maxErrorBytes {
		e.Extra = nil
	}
	return c.close(&pb.InvokeResponse{Event: &pb.InvokeResponse_Error{Error: e}})
}

// finish sends the result, in pieces if it does not fit into one message.
func (c *Call) finish(t *Tool, r *pb.Result) error {
	size := resultSize(r)
	if most := maxResult(c.Request, t.Definition); most > 0 && size > most {
		return c.fail(&pb.Error{Code: "result_too_large", Blame: "plugin",
			Message: fmt.Sprintf("the result has %d bytes and the limit is %d; ask for less (a filter, a page, a range)", size, most)})
	}
	limit := c.server.messageLimit()
	if proto.Size(r)+envelope > limit {
		piece := max(limit/4, 1)
		for _, block := range r.GetContent() {
			c.sendPieces(pb.Chunk_PART_CONTENT, block, piece)
		}
		if len(r.GetStructured()) > 0 {
			c.sendPieces(pb.Chunk_PART_STRUCTURED, r.GetStructured(), piece)
		}
		r = &pb.Result{IsError: r.GetIsError(), Meta: r.GetMeta()}
	}
	return c.close(&pb.InvokeResponse{Event: &pb.InvokeResponse_Result{Result: r}})
}

func (c *Call) sendPieces(part pb.Chunk_Part, data []byte, piece int) {
	for {
		n := min(piece, len(data))
		c.send(&pb.InvokeResponse{Event: &pb.InvokeResponse_Chunk{
			Chunk: &pb.Chunk{Part: part, Data: data[:n], Last: n == len(data)},
		}})
		if data = data[n:]; len(data) == 0 {
			return
		}
	}
}

func (s *Server) messageLimit() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit
}

// resultSize counts as the host does: the bytes of the parts.
func resultSize(r *pb.Result) uint64 {
	n := len(r.GetStructured()) + len(r.GetMeta())
	for _, c := range r.GetContent() {
		n += len(c)
	}
	return uint64(n)
}

// maxResult is the smaller of the host's limit and the tool's own; 0 is none.
func maxResult(req *pb.InvokeRequest, d *pb.ToolDefinition) uint64 {
	host, own := req.GetMaxResultBytes(), d.GetMaxResultBytes()
	if host == 0 || own != 0 && own < host {
		return own
	}
	return host
}

// Arguments returns the call's arguments; none is the empty object.
func (c *Call) Arguments() json.RawMessage {
	if len(c.Request.GetArguments()) == 0 {
		return json.RawMessage("{}")
	}
	return c.Request.GetArguments()
}
