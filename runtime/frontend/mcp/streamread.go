package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hermesd/hermesd/internal/rawjson"
)

const (
	// MaxLine bounds one message on a stream, in bytes.
	MaxLine = 16 << 20
	// drainTime is how long calls may go on after a client has sent its last message.
	drainTime = 10 * time.Second
)

// ErrLineTooLong is a line that was passed over.
var ErrLineTooLong = fmt.Errorf("a message is longer than %d MiB", MaxLine>>20)

// ReadLine reads one line without its end. Of a line that is too long it keeps nothing, but reads it to its end.
func ReadLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	for tooLong := false; ; {
		part, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(text)+len(part) > MaxLine; !tooLong {
			text = append(text, part...)
		}
		last := errors.Is(err, io.EOF) && (tooLong || len(text) > 0) // without an end
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !last:
			return nil, err
		case tooLong:
			return nil, ErrLineTooLong
		}
		return bytes.TrimRight(text, "\r\n"), nil
	}
}

// read takes lines off the stream until it ends, or the connection is closed, which closes the stream. Plain calls end with
// it: nothing could cancel them any more.
func (c *streamConn) read(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for r := bufio.NewReaderSize(c.rwc, 64<<10); ; {
		text, err := ReadLine(r)
		switch {
		case errors.Is(err, ErrLineTooLong):
			err = c.complain(nil, jsonrpc.CodeInvalidRequest, err.Error())
		case err != nil:
			if errors.Is(err, io.EOF) {
				c.drain()
			}
			err = errors.Join(err, c.pass(arrival{err: err}))
		default:
			err = c.take(ctx, text)
		}
		if err != nil {
			return
		}
	}
}

// drain waits, for a while, until what was asked is answered: `printf … | hermesd mcp` closes its end at once.
func (c *streamConn) drain() {
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-c.requests.idle():
	case <-timer.C:
	case <-c.closed:
	}
}

// pass hands something to the SDK. It fails when the connection is closed.
func (c *streamConn) pass(a arrival) error {
	select {
	case c.arrivals <- a:
		return nil
	case <-c.closed:
		return io.ErrClosedPipe
	}
}

// take takes a line: one message, or the batch of them that clients up to 2025-03-26 may send, as many as may be open. What
// cannot be read is answered, and no error.
func (c *streamConn) take(ctx context.Context, text []byte) error {
	if call, ok := readPlainCall(text, &c.last); ok && c.servesPlain(call) {
		return c.call(ctx, call)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	if !rawjson.Valid(text) {
		return c.complain(nil, jsonrpc.CodeParseError, "parse error: not one JSON value in UTF-8 on the line")
	}
	var parts []json.RawMessage
	n := 0
	batch := rawjson.Elements(text, func(part json.RawMessage) {
		if n++; n <= maxOpen {
			parts = append(parts, part)
		}
	})
	switch {
	case !batch:
		return c.takeMessage(text)
	case n == 0:
		return c.complain(nil, jsonrpc.CodeInvalidRequest, "invalid request: an empty batch")
	case n > maxOpen:
		return c.complain(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("invalid request: a batch of %d messages; send %d at most", n, maxOpen))
	}
	for _, part := range parts {
		if err := c.takeMessage(part); err != nil {
			return err
		}
	}
	return nil
}

// begin notes a request, and has the daemon's end wait for its answer, unless that does not tell its end.
func (c *streamConn) begin(id any, this *request) error {
	if c.hold != nil && !this.lasts {
		this.release = sync.OnceFunc(c.hold())
	}
	err := c.requests.begin(id, this)
	if err != nil && this.release != nil {
		this.release()
	}
	return err
}

// takeMessage takes one message for the SDK.
func (c *streamConn) takeMessage(raw json.RawMessage) error {
	err := saysOnce(raw)
	var m jsonrpc.Message
	if err == nil {
		m, err = jsonrpc.DecodeMessage(c.ids.hide(raw))
	}
	if err != nil {
		return c.complain(idOf(raw), jsonrpc.CodeInvalidRequest, "invalid request: "+err.Error())
	}
	if r, ok := m.(*jsonrpc.Request); ok {
		switch {
		case r.IsCall():
			if err := c.begin(r.ID.Raw(), &request{initializes: r.Method == methodInitialize, lasts: r.Method == methodListen}); err != nil {
				return c.turnAway(idOf(raw), err)
			}
		case r.Method == methodCancelled && c.requests.cancel(c.ids.key(cancelledID(r.Params))):
			return nil
		}
	}
	return c.pass(arrival{message: m})
}

// cancelledID is the id of the request that a notifications/cancelled speaks of.
func cancelledID(params json.RawMessage) (id json.RawMessage) {
	rawjson.Members(params, func(key string, value json.RawMessage) {
		if key == "requestId" {
			id = value
		}
	})
	return id
}

// turnAway answers a request that was not begun.
func (c *streamConn) turnAway(id json.RawMessage, err error) error {
	switch {
	case errors.Is(err, errIDInUse): // an answer under it would be the other request's
		return c.complain(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("invalid request: %v: %s", err, id))
	case errors.Is(err, errManyOpen):
		return c.complain(id, jsonrpc.CodeInternalError, err.Error())
	}
	return err
}

// complain answers a message that was not taken in. An id of nil is one that nobody knows (JSON-RPC 2.0, section 5.1). It
// waits until the client has read that: one that reads nothing cannot make the daemon keep answers without end.
func (c *streamConn) complain(id json.RawMessage, code int64, message string) error {
	raw, err := refusal(id, code, message)
	if err != nil {
		return err
	}
	return c.send(context.Background(), raw)
}
