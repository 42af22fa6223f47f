package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// maxEvents bounds the progress steps and log lines of one call that wait for its caller; more are left out.
	maxEvents = 64
	// cancelTime bounds telling the server that a call was given up.
	cancelTime = 5 * time.Second
)

// call is one request of ours that waits for its answer.
type call struct {
	id     int64
	ctx    context.Context
	of     *tool.Call     // nil for the provider's own requests, which no question or log line belongs to
	host   *provider.Host // of a tool call
	events chan func()    // nil unless the caller wants progress or log lines
	answer chan reply     // holds one
	sent   atomic.Bool
}

// reply is how a request ended: with the server's result or error, or with a fault of the connection.
type reply struct {
	result, failure json.RawMessage
	err             error
}

func (c *call) finish(r reply) {
	select {
	case c.answer <- r:
	default: // it has ended already
	}
}

// tell queues an event for the caller's goroutine, so that a slow caller never holds up the line.
func (c *call) tell(event func()) {
	select {
	case c.events <- event:
	default:
	}
}

// rpcError is a JSON-RPC error that the server answered.
type rpcError struct {
	code    int64
	message string
	data    json.RawMessage
	task    bool // it ended a task
}

func (e *rpcError) Error() string { return fmt.Sprintf("%s (code %d)", e.message, e.code) }

// request is what roundTrip sends.
type request struct {
	method, name string
	// params writes the members of the params object, without braces.
	params  func(b *bytes.Buffer) error
	extra   string // members of params._meta, each ended by a comma, besides the line's own
	headers map[string]string
	of      *tool.Call
	host    *provider.Host
}

// roundTrip sends a request and waits for its result, running the caller's progress and log functions meanwhile. Errors are
// *rpcError, *brokenError or that of ctx.
func (l *line) roundTrip(ctx context.Context, r *request) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream and the questions of this call
	c := &call{ctx: ctx, of: r.of, host: r.host, answer: make(chan reply, 1)}
	if r.host != nil && (r.host.OnProgress != nil || r.host.OnLog != nil) {
		c.events = make(chan func(), maxEvents)
	}
	meta, err := l.register(c, r)
	if err != nil {
		return nil, err
	}
	defer l.take(c.id)
	data, err := encode(c, r, meta+r.extra)
	if err != nil {
		return nil, err
	}
	sent, err := l.send(ctx, &frame{data: data, method: r.method, name: r.name, headers: r.headers, call: c})
	switch {
	case ctx.Err() != nil:
		return nil, l.giveUp(ctx, c, sent)
	case err != nil:
		return nil, &brokenError{sent: sent, cause: err}
	}
	for {
		select {
		case event := <-c.events:
			event()
		case a := <-c.answer:
			c.drain()
			return a.unpack()
		case <-ctx.Done():
			return nil, l.giveUp(ctx, c, true)
		}
	}
}

// drain runs the events that came before the answer.
func (c *call) drain() {
	for {
		select {
		case event := <-c.events:
			event()
		default:
			return
		}
	}
}

func (a reply) unpack() (json.RawMessage, error) {
	switch {
	case a.err != nil:
		return nil, a.err
	case !rawjson.IsNull(a.failure):
		e := &rpcError{}
		rawjson.Members(a.failure, func(key string, value json.RawMessage) {
			switch key {
			case "code":
				// A code that is no integer stays 0: the message is what counts.
				e.code, _ = strconv.ParseInt(string(value), 10, 64)
			case "message":
				e.message, _ = rawjson.String(value)
			case "data":
				e.data = value
			}
		})
		return nil, e
	default:
		return a.result, nil
	}
}

// register gives a call its number, and returns what the protocol wants in its _meta.
func (l *line) register(c *call, r *request) (meta string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return "", &brokenError{cause: context.Cause(l.ctx)}
	}
	if l.retired != nil {
		return "", &brokenError{cause: l.retired}
	}
	l.last++
	c.id = l.last
	l.calls[c.id] = c
	if l.meta == nil {
		return "", nil
	}
	if r.of == nil {
		return l.meta[canEverything], nil
	}
	return l.meta[abilitiesOf(r.host)], nil
}

// giveUp ends a call whose caller left, and tells the server so.
func (l *line) giveUp(ctx context.Context, c *call, sent bool) error {
	l.take(c.id)
	if sent {
		reason := ctx.Err().Error()
		l.goWork(func() {
			ctx, cancel := context.WithTimeout(l.ctx, cancelTime)
			defer cancel()
			data := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":%q}}`, c.id, reason)
			if _, err := l.send(ctx, &frame{data: data, method: "notifications/cancelled"}); err != nil {
				l.logger.Debug("the server could not be told that a call was cancelled", "error", err)
			}
		})
	}
	return ctx.Err()
}

// encode writes a request by hand: the arguments go out as they came in, apart from white space, which may not hold a
// newline on a stdio line.
func encode(c *call, r *request, meta string) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(256)
	b.WriteString(`{"jsonrpc":"2.0","id":`)
	b.Write(strconv.AppendInt(b.AvailableBuffer(), c.id, 10))
	b.WriteString(`,"method":"`)
	b.WriteString(r.method)
	b.WriteString(`","params":{`)
	before := b.Len()
	if r.params != nil {
		if err := r.params(&b); err != nil {
			return nil, err
		}
	}
	progress := r.host != nil && r.host.OnProgress != nil
	if meta != "" || progress {
		if b.Len() > before {
			b.WriteByte(',')
		}
		b.WriteString(`"_meta":{`)
		b.WriteString(meta)
		if progress {
			b.WriteString(`"progressToken":`)
			b.Write(strconv.AppendInt(b.AvailableBuffer(), c.id, 10))
		} else {
			b.Truncate(b.Len() - 1) // the comma behind the last member of meta
		}
		b.WriteByte('}')
	}
	b.WriteString("}}")
	return b.Bytes(), nil
}

// writeString appends a JSON string without HTML escapes.
func writeString(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("mcpclient: a string did not marshal: " + err.Error())
	}
	b.Truncate(b.Len() - 1) // Encode's newline
}

// alive asks the server for any answer at all.
func (l *line) alive(ctx context.Context) error {
	method := "ping"
	if l.protocol() > lastInitialize { // 2026-07-28 has no ping
		method = methodDiscover
	}
	_, err := l.roundTrip(ctx, &request{method: method})
	var refused *rpcError
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// refused ends the request of f with the JSON-RPC error that the server put into an HTTP error. It reports whether somebody
// waited for it.
func (l *line) refused(f *frame, failure json.RawMessage) bool {
	if f.call != nil {
		c := l.take(f.call.id)
		if c != nil {
			c.finish(reply{failure: failure})
		}
		return true
	}
	var e jsonrpc.Error
	if json.Unmarshal(failure, &e) != nil {
		return false
	}
	l.push(&jsonrpc.Response{ID: f.id, Error: &e})
	return true
}
