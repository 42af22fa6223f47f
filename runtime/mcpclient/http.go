package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hermesd/hermesd/internal/rawjson"
)

const (
	// deleteTime bounds telling a server that its session is no longer needed.
	deleteTime = 2 * time.Second
	// maxErrorBody is how much of the body of an HTTP error is read.
	maxErrorBody = 64 << 10
	// Streams that broke are resumed after resumeMin, doubling to resumeMax, unless the server names a time.
	resumeMin, resumeMax = time.Second, 30 * time.Second
	// maxResumes bounds resuming the stream of one call when nothing new comes.
	maxResumes = 5
	// methodListen opens a stream of notifications, since 2026-07-28.
	methodListen = "subscriptions/listen"
	// standardHeaders is the first protocol version that repeats method and name in headers and has no GET stream.
	standardHeaders = "2026-07-28"
)

// errSessionGone is a session that the server has forgotten: it answers 404, and nothing was run.
var errSessionGone = errors.New("the server no longer knows the session")

// streamable carries messages over streamable HTTP (MCP 2025-03-26 and later): each message is a POST, whose answer is JSON
// or a stream of events; a GET stream brings what belongs to no request. What comes on the stream of a call belongs to that
// call. A request that fails fails alone; whether the server still lives is then asked once (suspect).
type streamable struct {
	line    *line
	opts    *Options
	client  *http.Client
	suspect func(error)
	ctx     context.Context // ends with close
	cancel  context.CancelFunc
	loops   sync.WaitGroup
	status  atomic.Int32 // of the last answer that was no success

	mu      sync.Mutex
	closed  bool
	session string
	version string
}

func newStreamable(l *line, o *Options, client *http.Client, suspect func(error)) *streamable {
	ctx, cancel := context.WithCancel(context.Background())
	return &streamable{line: l, opts: o, client: client, suspect: suspect, ctx: ctx, cancel: cancel}
}

// established opens the GET stream, which versions before 2026-07-28 have.
func (s *streamable) established(version string) {
	s.mu.Lock()
	s.version = version
	s.mu.Unlock()
	if version < standardHeaders {
		s.goLoop(s.listen)
	}
}

func (s *streamable) goLoop(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.loops.Go(f)
	return true
}

func (s *streamable) close() {
	s.mu.Lock()
	first, session := !s.closed, s.session
	s.closed = true
	s.mu.Unlock()
	if first && session != "" && !errors.Is(s.line.err(), errSessionGone) {
		s.forget()
	}
	s.cancel()
	s.loops.Wait()
	s.client.CloseIdleConnections()
}

// forget ends the session on the server's side. It is a courtesy: a server that does not answer ends it by itself.
func (s *streamable) forget() {
	ctx, cancel := context.WithTimeout(s.ctx, deleteTime)
	defer cancel()
	resp, err := s.do(ctx, http.MethodDelete, nil, "")
	if err != nil {
		s.line.logger.Debug("the server could not be told that its session ends", "error", err)
		return
	}
	discard(resp)
}

// send posts a message. A request's POST runs beside the caller, who waits for the answer only; anything else returns when
// the server has it, so that what follows cannot overtake it.
func (s *streamable) send(ctx context.Context, f *frame) (sent bool, err error) {
	if !f.expectsAnswer() {
		return s.post(ctx, f)
	}
	work := s.exchange
	if f.method == methodListen {
		work = s.subscribe
	}
	ran := s.goLoop(func() { work(ctx, f) })
	if !ran {
		return false, errStopped
	}
	return true, nil
}

// exchange makes a request and ends it one way or the other.
func (s *streamable) exchange(ctx context.Context, f *frame) {
	if sent, err := s.post(ctx, f); err != nil {
		s.failed(ctx, f, sent, err)
	}
}

// failed ends the request of a failed exchange, and asks whether the server still lives.
func (s *streamable) failed(ctx context.Context, f *frame, sent bool, err error) {
	if errors.Is(err, errSessionGone) {
		s.line.retire(err) // others may still have their answers, or the same refusal
		s.line.lost(f, false, err)
		return
	}
	s.line.lost(f, sent, err)
	var status *statusError
	var large *tooLargeError
	switch {
	case ctx.Err() != nil || errors.As(err, &large) || errors.As(err, &status) && status.status < 500:
	default:
		s.suspect(err)
	}
}

// post sends one message and takes in what the server answers.
func (s *streamable) post(ctx context.Context, f *frame) (sent bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	ctx, wrote := watchWrite(ctx, f)
	resp, err := s.do(ctx, http.MethodPost, f, "")
	if err != nil {
		return wrote.Load(), err
	}
	defer discard(resp)
	answered, err := s.check(resp, f)
	if err != nil {
		var status *statusError
		return !errors.Is(err, errSessionGone) && !(errors.As(err, &status) && status.refused()), err
	}
	if answered {
		return true, nil
	}
	if f.again {
		s.line.missed()
	}
	if f.method == "initialize" {
		s.mu.Lock()
		s.session = resp.Header.Get("Mcp-Session-Id")
		s.mu.Unlock()
	}
	if !f.expectsAnswer() {
		return true, nil
	}
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind {
	case "application/json":
		return true, s.body(resp, f)
	case "text/event-stream":
		return true, s.answers(ctx, resp, f)
	default:
		return true, fmt.Errorf("the server answered with content type %q instead of JSON or an event stream; is url an MCP endpoint?", kind)
	}
}

// watchWrite notes when a request goes out, from where on the server may have it.
func watchWrite(ctx context.Context, f *frame) (context.Context, *atomic.Bool) {
	wrote := &atomic.Bool{}
	if f.call != nil {
		wrote = &f.call.sent
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }}), wrote
}

// do makes one HTTP request.
func (s *streamable) do(ctx context.Context, method string, f *frame, lastEvent string) (*http.Response, error) {
	var body io.Reader
	if f != nil {
		body = bytes.NewReader(f.data)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.opts.URL, body)
	if err != nil {
		return nil, err
	}
	for name, value := range s.opts.Headers {
		req.Header.Set(name, value)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	s.opts.via(req.Header)
	s.mu.Lock()
	version, session := s.version, s.session
	s.mu.Unlock()
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	req.Header.Set("Accept", "text/event-stream")
	if f != nil {
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Content-Type", "application/json")
		if f.version != "" {
			version = f.version
		}
		if version >= standardHeaders && f.method != "" {
			req.Header.Set("Mcp-Method", f.method)
			if f.name != "" {
				req.Header.Set("Mcp-Name", f.name)
			}
			for name, value := range f.headers {
				req.Header.Set(name, value)
			}
		}
	}
	if version != "" {
		req.Header.Set("Mcp-Protocol-Version", version)
	}
	if lastEvent != "" {
		req.Header.Set("Last-Event-ID", lastEvent)
	}
	return s.client.Do(req)
}

// check turns an HTTP status other than success into an error, unless the body is a JSON-RPC answer to f, which it hands on.
func (s *streamable) check(resp *http.Response, f *frame) (answered bool, err error) {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return false, nil
	}
	s.status.Store(int32(resp.StatusCode))
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		body = nil // the status says enough
	}
	var failure json.RawMessage
	if json.Valid(body) {
		rawjson.Members(body, func(key string, value json.RawMessage) {
			if key == "error" {
				failure = value
			}
		})
	}
	s.mu.Lock()
	session := s.session
	s.mu.Unlock()
	if resp.StatusCode == http.StatusNotFound && session != "" {
		return false, errSessionGone
	}
	text := strings.Join(strings.Fields(string(body)), " ")
	if !rawjson.IsNull(failure) {
		if f != nil && f.expectsAnswer() && s.line.refused(f, failure) {
			return true, nil
		}
		_, err := reply{failure: failure}.unpack()
		text = err.Error()
	}
	return false, newStatusError(s.opts, resp, bounded(text, 300))
}

// body takes in an answer that is one JSON text.
func (s *streamable) body(resp *http.Response, f *frame) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, int64(s.opts.MaxMessageBytes)+1))
	if err != nil {
		return fmt.Errorf("reading the server's answer: %w", err)
	}
	if len(data) > s.opts.MaxMessageBytes {
		return &tooLargeError{most: s.opts.MaxMessageBytes}
	}
	if !s.line.receive(data, f.call) {
		return errors.New("the server's answer is no JSON-RPC answer")
	}
	return nil
}

// discard ends with a response so that its connection can be used again where little is left to read.
func discard(resp *http.Response) {
	// What is left over does not matter, and neither does how reading it ends.
	io.CopyN(io.Discard, resp.Body, maxErrorBody) //nolint:errcheck
	resp.Body.Close()                             //nolint:errcheck
}
