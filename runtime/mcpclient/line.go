package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/provider/providerlog"
)

// firstCallID is where the numbers of our own requests start. The SDK counts its few requests from 1 on the same line; both
// stay below 2^31, which every server can hold.
const firstCallID = 1 << 30

// retireTime bounds the wait for requests that are under way on a line that is to end.
const retireTime = 2 * time.Second

// errStopped ends a line that the daemon itself closed.
var errStopped = errors.New("the connection was closed by hermesd")

// carrier moves messages to and from a server: over a process's pipes, streamable HTTP, or HTTP with SSE. It hands what
// comes in to its line.
type carrier interface {
	// send writes one message. It may return before the server has it; a request that fails later is told to
	// [line.lost]. sent says, for an error, whether the server may have got the message.
	send(ctx context.Context, f *frame) (sent bool, err error)
	// established is called once, when the protocol version has been negotiated.
	established(version string)
	// close gives the connection up, and waits for what the carrier started.
	close()
}

// frame is one message on its way to a server.
type frame struct {
	data         []byte // JSON without a newline in it
	method, name string // the method, and the tool's name for tools/call; 2026-07-28 repeats them in HTTP headers
	version      string // the protocol version, where the message itself names one
	headers      map[string]string
	id           jsonrpc.ID // valid for a request of the SDK
	call         *call      // set for a request of ours
	again        bool       // it opens a stream of notifications that had broken
}

func (f *frame) expectsAnswer() bool { return f.call != nil || f.id.IsValid() }

// line is one connection to a server, below the SDK's session and beside it. The SDK makes the handshake, negotiates the
// protocol and subscribes to list changes through it (line is its [mcp.Connection]). Calls and lists go straight through the
// line: their parts are never decoded into Go values and encoded again, which would lose the order of keys and large
// numbers and cost a multiple.
type line struct {
	carrier  carrier
	said     *providerlog.Log
	logger   *slog.Logger
	patience time.Duration
	ctx      context.Context // ends with the line
	cancel   context.CancelCauseFunc
	up       chan jsonrpc.Message // to the SDK
	work     sync.WaitGroup       // questions being answered, cancellations being sent
	heard    atomic.Uint64        // messages received
	asking   atomic.Int32
	owed     atomic.Int32 // requests of the server that are being answered
	probing  atomic.Bool
	noise    *slog.Logger           // for what the server can cause as often as it likes
	updated  func(uri string)       // told of changed resources; set before the handshake, nil for nobody
	changed  func(list string)      // told of changed lists, "tools" and the like; as updated
	garbled  atomic.Pointer[string] // the first line that was not JSON
	strict   bool                   // a lost discovery ends the line; see [Provider.connect]
	unasked  atomic.Bool            // that has happened

	mu       sync.Mutex
	closed   bool
	retired  error // why no new request may begin; nil if it may
	calls    map[int64]*call
	last     int64
	asked    map[string]context.CancelFunc // questions of the server, by its request id
	complete map[string]chan struct{}      // elicitations by URL that are waited for
	version  string                        // of the protocol, once negotiated
	meta     *requestMeta                  // nil before 2026-07-28
}

// newLine makes a line that waits for the answer to the probe for protocol 2026-07-28 as long as patience.
func newLine(said *providerlog.Log, patience time.Duration) *line {
	ctx, cancel := context.WithCancelCause(context.Background())
	logger := said.Logger()
	return &line{
		said: said, logger: logger, patience: patience, ctx: ctx, cancel: cancel, noise: said.Complaints(),
		up: make(chan jsonrpc.Message, 16), calls: map[int64]*call{}, last: firstCallID,
		asked: map[string]context.CancelFunc{}, complete: map[string]chan struct{}{},
	}
}

// fail ends the line with a reason; only the first counts. Every call in flight ends at once.
func (l *line) fail(err error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	calls := l.calls
	l.calls = nil
	l.mu.Unlock()
	l.cancel(err)
	for _, c := range calls {
		c.finish(reply{err: &brokenError{sent: c.sent.Load(), cause: err}})
	}
}

// retire lets no new request begin, and ends the line with a reason when those that are under way have had their answers, at
// the latest after retireTime.
func (l *line) retire(err error) {
	l.mu.Lock()
	first, idle := l.retired == nil, len(l.calls) == 0
	if first {
		l.retired = err
	}
	l.mu.Unlock()
	switch {
	case idle:
		l.fail(err)
	case first:
		l.goWork(func() {
			timer := time.NewTimer(retireTime)
			defer timer.Stop()
			select {
			case <-timer.C:
				l.fail(err)
			case <-l.done():
			}
		})
	}
}

// ending reports whether no new request may begin any more.
func (l *line) ending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed || l.retired != nil
}

// underWay is how many requests of ours wait for their answers.
func (l *line) underWay() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

// done is closed when the line has ended; err then says why.
func (l *line) done() <-chan struct{} { return l.ctx.Done() }
func (l *line) err() error            { return context.Cause(l.ctx) }

// close ends the line if it has not ended, and waits until nothing of it runs.
func (l *line) close() {
	l.fail(errStopped)
	l.carrier.close()
	l.work.Wait()
}

// goWork runs f in a goroutine that close waits for, unless the line has ended.
func (l *line) goWork(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.work.Go(f)
	return true
}

// receive takes one message from the server, or a batch. data becomes the line's own. origin is the call on whose stream
// the message came, where the transport can tell. It reports whether it was an answer, to origin if that is known.
func (l *line) receive(data []byte, origin *call) (answer bool) {
	if !utf8.Valid(data) { // RFC 8259 wants it; whoever reads on may rely on it
		data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
	}
	if !json.Valid(data) {
		seen := bounded(string(data), 200)
		l.garbled.CompareAndSwap(nil, &seen)
		l.noise.Warn("the server sent a line that is not JSON", "line", seen)
		return false
	}
	l.heard.Add(1)
	if rawjson.Elements(data, func(one json.RawMessage) { answer = l.route(one, origin) || answer }) {
		return answer
	}
	return l.route(data, origin)
}

func (l *line) route(data []byte, origin *call) (answer bool) {
	var id, method, params, result, failure json.RawMessage
	if !rawjson.Members(data, func(key string, value json.RawMessage) {
		switch key {
		case "id":
			id = value
		case "method":
			method = value
		case "params":
			params = value
		case "result":
			result = value
		case "error":
			failure = value
		}
	}) {
		l.noise.Warn("the server sent JSON that is no message", "line", bounded(string(data), 200))
		return false
	}
	if method == nil {
		if n, err := strconv.ParseInt(string(id), 10, 64); err == nil && n >= firstCallID {
			if c := l.take(n); c != nil {
				c.finish(reply{result: result, failure: failure})
			}
			return origin == nil || origin.id == n
		}
		l.sniffHandshake(result)
		l.toSDK(data)
		return origin == nil
	}
	switch name, _ := rawjson.String(method); name {
	case "notifications/progress":
		l.progress(params)
	case "notifications/message":
		l.logMessage(params, origin)
	case "notifications/resources/updated":
		l.resourceUpdated(params)
	case "notifications/elicitation/complete":
		l.elicitationComplete(params)
	case "notifications/cancelled":
		l.withdrawn(params)
	case "notifications/tools/list_changed", "notifications/resources/list_changed", "notifications/prompts/list_changed":
		if list := strings.Split(name, "/")[1]; l.changed != nil {
			l.changed(list)
		}
	case "notifications/subscriptions/acknowledged":
		l.toSDK(data)
	case "elicitation/create":
		l.answer(id, params, origin, elicit)
	case "sampling/createMessage":
		l.answer(id, params, origin, sample)
	default: // the SDK would queue without a bound whatever a server thinks of
		if !rawjson.IsNull(id) {
			l.request(name, id)
		}
	}
	return false
}

// sniffHandshake reads the protocol version from the answer to initialize, which transports need before the SDK has it.
func (l *line) sniffHandshake(result json.RawMessage) {
	if l.protocol() != "" {
		return
	}
	rawjson.Members(result, func(key string, value json.RawMessage) {
		if key == "protocolVersion" {
			version, _ := rawjson.String(value)
			l.negotiated(version)
		}
	})
}

// negotiated notes the protocol version of the line, once.
func (l *line) negotiated(version string) {
	l.mu.Lock()
	first := l.version == "" && version != ""
	if first {
		l.version = version
	}
	l.mu.Unlock()
	if first {
		l.carrier.established(version)
	}
}

// missed has all lists read again, after notifications may have been lost.
func (l *line) missed() {
	if l.changed != nil {
		l.changed("tools")
		l.changed("resources")
	}
}

// carry sets what every request has in its _meta from now on.
func (l *line) carry(meta *requestMeta) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meta = meta
}

func (l *line) protocol() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version
}

// toSDK hands a message to the SDK's session.
func (l *line) toSDK(data []byte) {
	m, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		l.noise.Warn("the server sent JSON that is no message", "line", bounded(string(data), 200), "error", err)
		return
	}
	l.push(m)
}

func (l *line) push(m jsonrpc.Message) {
	select {
	case l.up <- m:
	case <-l.done():
	}
}

// take removes a call that waits for its answer; nil if there is none of that number.
func (l *line) take(id int64) *call {
	l.mu.Lock()
	c := l.calls[id]
	delete(l.calls, id)
	retired := l.retired
	if len(l.calls) > 0 {
		retired = nil
	}
	l.mu.Unlock()
	if retired != nil {
		l.fail(retired)
	}
	return c
}

// lost tells whoever waits for the answer to f that it will not come.
func (l *line) lost(f *frame, sent bool, cause error) {
	if f.call != nil {
		if c := l.take(f.call.id); c != nil {
			c.finish(reply{err: &brokenError{sent: sent, cause: cause}})
		}
		return
	}
	if f.method == methodDiscover && l.strict && !answeredForGood(cause) {
		l.unasked.Store(true)
		l.fail(cause)
		return
	}
	if f.id.IsValid() {
		l.push(&jsonrpc.Response{ID: f.id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: cause.Error()}})
	}
}

// answeredForGood reports whether a failed exchange says something about what the server can do, and not about its moment.
func answeredForGood(cause error) bool {
	var status *statusError
	return errors.As(cause, &status) && status.status < 500 && status.status != http.StatusTooManyRequests
}

// send gives a message to the carrier, unless the line has ended.
func (l *line) send(ctx context.Context, f *frame) (sent bool, err error) {
	select {
	case <-l.done():
		return false, l.err()
	default:
	}
	return l.carrier.send(ctx, f)
}

// brokenError is a fault of the connection during an exchange.
type brokenError struct {
	sent  bool // the server may have got the request
	cause error
}

func (e *brokenError) Error() string { return e.cause.Error() }
func (e *brokenError) Unwrap() error { return e.cause }

// bounded shortens foreign text for logs and errors.
func bounded(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
