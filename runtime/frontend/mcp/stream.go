package mcp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	// maxLine bounds one message on a stream, in bytes.
	maxLine = 16 << 20
	// drainTime is how long calls may go on after a client has sent its last message.
	drainTime = 10 * time.Second
)

// ServeStream serves one client over a stream of newline-delimited messages, as MCP's stdio transport has them, until the
// client ends it or ctx ends. It closes rwc. What is no JSON-RPC is answered with an error, and the stream goes on.
func (s *Server) ServeStream(ctx context.Context, agent *disclosure.Agent, rwc io.ReadWriteCloser) error {
	server, err := s.join(agent)
	if err != nil {
		return errors.Join(err, rwc.Close())
	}
	defer s.streams.Done()
	ctx, cancel := bounded(ctx, s.base)
	defer cancel()
	conn := newStreamConn(rwc, s.options.Logger)
	session, err := server.sdk.Connect(frontend.WithAgent(ctx, agent), conn, nil)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	stop := context.AfterFunc(ctx, func() { // closing first: it ends the calls that Close would wait for
		if err := conn.Close(); err != nil {
			s.options.Logger.Debug("stream closed", "error", err)
		}
	})
	defer stop()
	err = session.Wait()
	if conn.stalled.Load() {
		return errUnread
	}
	if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// join counts a stream in, so that Close waits for it.
func (s *Server) join(agent *disclosure.Agent) (*agentServer, error) {
	a := s.server(agent)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a == nil || s.closed {
		return nil, tool.Errorf(tool.ShuttingDown, "hermesd is stopping; connect again in a moment")
	}
	s.streams.Add(1)
	return a, nil
}

// streamConn is an [sdk.Transport] and its one [sdk.Connection].
type streamConn struct {
	id    string
	rwc   io.ReadWriteCloser
	lines chan line
	queue []jsonrpc.Message // the rest of a batch; only Read touches it
	ids   *exactIDs
	out   *outbox
	log   *slog.Logger

	stalled atomic.Bool // it was closed because the client read nothing

	mu      sync.Mutex
	pending map[any]struct{} // ids of requests that were read and not answered
	idle    chan struct{}    // closed when pending is empty after the last message

	once   sync.Once
	closed chan struct{}
	err    error
}

type line struct {
	text []byte
	err  error
}

func newStreamConn(rwc io.ReadWriteCloser, logger *slog.Logger) *streamConn {
	return &streamConn{
		id: rand.Text(), rwc: rwc, lines: make(chan line), ids: newExactIDs(), out: newOutbox(), log: logger,
		pending: map[any]struct{}{}, closed: make(chan struct{}),
	}
}

// Connect implements [sdk.Transport].
func (c *streamConn) Connect(context.Context) (sdk.Connection, error) {
	go c.read()
	go c.write()
	return c, nil
}

// SessionID implements [sdk.Connection]: a stream is a session.
func (c *streamConn) SessionID() string { return c.id }

// read takes lines off the stream until it ends. It ends when the connection is closed, which closes the stream.
func (c *streamConn) read() {
	r := bufio.NewReaderSize(c.rwc, 64<<10)
	for {
		text, err := ReadLine(r)
		select {
		case c.lines <- line{text, err}:
		case <-c.closed:
			return
		}
		if err != nil && !errors.Is(err, ErrLineTooLong) {
			return
		}
	}
}

// ErrLineTooLong is a line that was passed over.
var ErrLineTooLong = fmt.Errorf("a message is longer than %d MiB", maxLine>>20)

// ReadLine reads one line without its end. Of a line that is too long it keeps nothing, but reads it to its end.
func ReadLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	for tooLong := false; ; {
		part, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(text)+len(part) > maxLine; !tooLong {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(text) > 0 && !tooLong: // a last line without an end
			return text, nil
		case err != nil:
			return nil, err
		case tooLong:
			return nil, ErrLineTooLong
		}
		return bytes.TrimRight(text, "\r\n"), nil
	}
}

// Read implements [sdk.Connection].
func (c *streamConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			next := c.queue[0]
			c.queue = c.queue[1:]
			c.expect(next)
			return next, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case l := <-c.lines:
			if err := c.take(ctx, l); err != nil {
				return nil, err
			}
		}
	}
}

// take puts a line's messages into the queue. What cannot be read is answered, and no error.
func (c *streamConn) take(ctx context.Context, l line) error {
	if errors.Is(l.err, ErrLineTooLong) {
		return c.complain(jsonrpc.CodeInvalidRequest, l.err.Error())
	}
	if l.err != nil {
		c.drain(ctx)
		return l.err
	}
	if len(bytes.TrimSpace(l.text)) == 0 {
		return nil
	}
	messages, code, err := decode(l.text, c.ids.hide)
	if err != nil {
		return c.complain(code, err.Error())
	}
	c.queue = messages
	return nil
}

// decode reads one message, or the batch of them that clients up to 2025-03-26 may send, each as prepare leaves it.
func decode(text []byte, prepare func(json.RawMessage) json.RawMessage) (messages []jsonrpc.Message, code int, err error) {
	if !json.Valid(text) {
		return nil, jsonrpc.CodeParseError, errors.New("parse error: not one JSON value on the line")
	}
	parts := []json.RawMessage{text}
	if bytes.HasPrefix(bytes.TrimLeft(text, " \t"), []byte("[")) {
		if err := json.Unmarshal(text, &parts); err != nil || len(parts) == 0 {
			return nil, jsonrpc.CodeInvalidRequest, errors.New("invalid request: an empty batch")
		}
	}
	for _, part := range parts {
		if err := saysOnce(part); err != nil {
			return nil, jsonrpc.CodeInvalidRequest, fmt.Errorf("invalid request: %w", err)
		}
		m, err := jsonrpc.DecodeMessage(prepare(part))
		if err != nil {
			return nil, jsonrpc.CodeInvalidRequest, fmt.Errorf("invalid request: %w", err)
		}
		messages = append(messages, m)
	}
	return messages, 0, nil
}

// complain answers what has no id that could be answered (JSON-RPC 2.0, section 5.1).
func (c *streamConn) complain(code int, message string) error {
	raw, err := refusal(nil, int64(code), message)
	if err != nil {
		return err
	}
	return c.send(context.Background(), raw)
}

// Write implements [sdk.Connection].
func (c *streamConn) Write(ctx context.Context, m jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if r, ok := m.(*jsonrpc.Request); ok && tellsOfChange(r) {
		c.out.mention(raw) // even if its time is over, which it shares with other sessions
		return nil
	}
	err = c.send(ctx, c.ids.show(raw))
	if r, ok := m.(*jsonrpc.Response); ok {
		c.answered(r.ID.Raw())
	}
	return err
}

func (c *streamConn) expect(m jsonrpc.Message) {
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pending[r.ID.Raw()] = struct{}{}
	}
}

func (c *streamConn) answered(id any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
	if len(c.pending) == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// drain waits, for a while, until what was asked is answered: `printf … | hermesd mcp` closes its end at once.
func (c *streamConn) drain(ctx context.Context) {
	c.mu.Lock()
	if len(c.pending) == 0 {
		c.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	c.idle = idle
	c.mu.Unlock()
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	case <-ctx.Done():
	case <-c.closed:
	}
}

// Close implements [sdk.Connection].
func (c *streamConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.err = c.rwc.Close()
	})
	return c.err
}
