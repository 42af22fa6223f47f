package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

// ServeStream serves one client over a stream of newline-delimited messages, as MCP's stdio transport has them, until the
// client ends it or ctx ends. It closes rwc. What is no JSON-RPC is answered with an error, and the stream goes on.
func (s *Server) ServeStream(ctx context.Context, agent *disclosure.Agent, rwc io.ReadWriteCloser) error {
	server, err := s.join(agent)
	if err != nil {
		return errors.Join(err, rwc.Close())
	}
	defer s.leave(agent)
	ctx, cancel := bounded(frontend.WithAgent(ctx, agent), s.base)
	defer cancel()
	conn := newStreamConn(rwc, s.options.Logger)
	session, err := server.sdk.Connect(ctx, conn, nil)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	conn.start(ctx, session, server.streamCall, s.options.Desk.Hold)
	stop := context.AfterFunc(ctx, func() { // closing first: it ends the calls that Close would wait for
		if err := conn.Close(); err != nil {
			s.options.Logger.Debug("stream closed", "error", err)
		}
	})
	defer stop()
	err = session.Wait()
	conn.requests.calls.Wait()
	if conn.cause != nil {
		err = conn.cause
	}
	if !errors.Is(err, errUnread) && (ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe)) {
		return nil
	}
	return err
}

// join counts a stream in, so that Close waits for it, until leave.
func (s *Server) join(agent *disclosure.Agent) (*agentServer, error) {
	a := s.server(agent)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a == nil || s.closed {
		return nil, tool.Errorf(tool.ShuttingDown, "hermesd is stopping; connect again in a moment")
	}
	if !s.attached.Take(agent.Name, 1) {
		return nil, tool.Errorf(tool.NotGranted, "%w", errTooManySessions)
	}
	s.streams.Add(1)
	return a, nil
}

func (s *Server) leave(agent *disclosure.Agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attached.Leave(agent.Name, 1)
	s.streams.Done()
}

// streamConn is an [sdk.Transport] and its one [sdk.Connection]. Plain calls it serves itself, and the SDK does not see them.
type streamConn struct {
	id       string
	rwc      io.ReadWriteCloser
	arrivals chan arrival // for the SDK
	requests *requests
	ids      *exactIDs
	last     lastClient
	out      *outbox
	log      *slog.Logger

	session *sdk.ServerSession
	serve   plainServer
	hold    func() (release func()) // the daemon's end, until a request is answered; nil holds nothing

	once   sync.Once
	closed chan struct{}
	cause  error // why it was closed; nil for no failure of its own
	err    error // of closing it
}

// plainServer runs a plain call of a stream's client. It calls answer once, with the message that answers the call, maybe
// before the call has ended and from another goroutine.
type plainServer func(ctx context.Context, c *streamConn, call *plainCall, answer func([]byte, error))

// arrival is a message of the client, or the end of the stream.
type arrival struct {
	message jsonrpc.Message
	err     error
}

func newStreamConn(rwc io.ReadWriteCloser, logger *slog.Logger) *streamConn {
	return &streamConn{
		id: rand.Text(), rwc: rwc, arrivals: make(chan arrival), requests: newRequests(), ids: newExactIDs(), out: newOutbox(), log: logger,
		closed: make(chan struct{}),
	}
}

// Connect implements [sdk.Transport]. Nothing is read or written before start.
func (c *streamConn) Connect(context.Context) (sdk.Connection, error) { return c, nil }

// start begins to read and to write. Plain calls end with ctx. Without it there are none: all calls
// are the SDK's.
func (c *streamConn) start(ctx context.Context, session *sdk.ServerSession, serve plainServer, hold func() func()) {
	c.session, c.serve, c.hold = session, serve, hold
	go c.read(ctx)
	go c.write()
}

// SessionID implements [sdk.Connection]: a stream is a session.
func (c *streamConn) SessionID() string { return c.id }

// Read implements [sdk.Connection].
func (c *streamConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.closed:
		return nil, io.EOF
	case a := <-c.arrivals:
		return a.message, a.err
	}
}

// Write implements [sdk.Connection].
func (c *streamConn) Write(ctx context.Context, m jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	raw = c.ids.show(raw)
	if r, ok := m.(*jsonrpc.Request); ok && tellsOfChange(r) {
		c.out.mention(raw) // even if its time is over, which it shares with other sessions
		return nil
	}
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		return c.send(ctx, raw)
	}
	this := c.requests.end(r.ID.Raw())
	queued := func() {}
	if this != nil && this.initializes && r.Error == nil {
		queued = c.requests.beginSession // what is answered from now on is written after this answer
	}
	err = c.sent(ctx, c.out.put(raw, queued))
	c.requests.answered(this)
	return err
}

// Close implements [sdk.Connection].
func (c *streamConn) Close() error { return c.end(nil) }

func (c *streamConn) end(cause error) error {
	c.once.Do(func() {
		c.cause = cause
		c.requests.close()
		close(c.closed)
		c.err = c.rwc.Close()
	})
	return c.err
}
