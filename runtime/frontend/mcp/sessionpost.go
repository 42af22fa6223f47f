package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/frontend"
)

const (
	// quietTime is how long a call may run before its client gets a stream that it can take up after a broken connection.
	quietTime = 250 * time.Millisecond
	// unseenPart is the part of a session's idle time after which the SDK, which counts that, has to see a request again.
	unseenPart = 4
)

// post serves a request of a session that brings something. A call of which everything is as usual begins without the SDK,
// once the session has begun, as long as the SDK knows that the session is in use.
func (t *router) post(w http.ResponseWriter, r *http.Request, s *liveSession, begun bool) {
	if begun && ordinaryHeaders(r.Header) && s.calls.unseen() < t.server.options.SessionIdle/unseenPart {
		body, ok := frontend.ReadBody(w, r)
		if !ok {
			return
		}
		if call, ok := readPlainCall(body, &t.last); ok && call.version == "" {
			t.counted(w, s, func() { t.callQuietly(w, r, s, call, body) })
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	body, ok := takeIn(w, r)
	switch {
	case !ok:
	case begun && s.calls.cancel(body):
		w.WriteHeader(http.StatusAccepted)
	default:
		t.counted(w, s, func() { t.passOn(w, r, s, body) })
	}
}

// counted serves a request that the end of its session waits for.
func (t *router) counted(w http.ResponseWriter, s *liveSession, serve func()) {
	if !t.server.events.post(s) {
		noSession(w)
		return
	}
	defer s.posts.Done()
	serve()
}

// passOn leaves a request to the SDK.
func (t *router) passOn(w http.ResponseWriter, r *http.Request, s *liveSession, body []byte) {
	begun, id, err := s.calls.begin(body)
	if err != nil {
		turnAway(w, id, err)
		return
	}
	taken := false
	defer func() {
		if !taken {
			s.calls.drop(begun)
		}
	}()
	taken = t.pass(w, r, s, body)
}

// pass has the SDK serve a request. It reports whether the SDK took in what is in it.
func (t *router) pass(w http.ResponseWriter, r *http.Request, s *liveSession, body []byte) bool {
	s.calls.sees()
	out := exactly(w, r, body, s.ids)
	t.withSessions.ServeHTTP(&primed{ResponseWriter: out}, r)
	return !out.refused
}

// callQuietly runs a call and answers its request with one document, unless the call has something to say before, or does
// not end soon. Then the SDK gets the request. A client that goes away before that does not hear of its call any more, which
// goes on, as in all sessions.
//
// It is the SDK for which another goroutine is begun then. A goroutine for each call would cost a tenth of the call.
func (t *router) callQuietly(w http.ResponseWriter, r *http.Request, s *liveSession, call *plainCall, body []byte) {
	a := t.server.server(frontend.AgentOf(r.Context()))
	if a == nil || !t.server.begin() {
		stopping(w)
		return
	}
	defer t.server.streams.Done()
	c := newSessionCall(r.Context(), a, s, call)
	defer c.request.cancel()
	if err := s.calls.open.begin(c.key, &c.request); err != nil {
		turnAway(w, call.id, err)
		return
	}
	c.upgrade = func() {
		switch {
		case r.Context().Err() != nil:
			c.leave()
		case s.calls.handOver(c):
			go t.handOver(w, r, s, c, body)
		}
	}
	from := a.sessionCall(r.Header, s.client.ID(), call, s.client.InitializeParams()) // now: upgrade writes to the header
	soon := time.AfterFunc(quietTime, c.want)
	defer soon.Stop()
	handed := s.calls.run(c, from)
	switch {
	case c.failure != nil:
		panic(c.failure) // as if this goroutine had called the SDK
	case handed:
		return
	}
	err := c.writeAnswer(w) // also if the client seems to have gone: it may have closed its half only
	if err = cmp.Or(err, r.Context().Err()); err != nil {
		t.server.options.Logger.Debug("a call was not answered", "tool", call.name, "error", err)
	}
}

// handOver has the SDK serve the request of a call that runs.
func (t *router) handOver(w http.ResponseWriter, r *http.Request, s *liveSession, c *sessionCall, body []byte) {
	defer close(c.served)
	taken := false
	defer func() {
		if c.failure = recover(); !taken {
			s.calls.takeBack(c)
			t.server.options.Logger.Debug("a call was not answered: its request was refused when it had something to say", "tool", c.name)
		}
	}()
	r.Header.Set(adoptionHeader, c.token)
	taken = t.pass(w, r, s, body)
}

// sessionCall is a plain call of a session as the desk wants it.
func (a *agentServer) sessionCall(header http.Header, id string, call *plainCall, began *sdk.InitializeParams) *frontend.Call {
	client := ""
	if began.ClientInfo != nil {
		client = began.ClientInfo.Name
	}
	agent := a.agent.Load()
	return &frontend.Call{
		Agent: agent, Session: a.owner.options.Desk.Session(agent, sessionName(id, header, call.session), client),
		Name: call.name, Arguments: call.arguments, TraceParent: header.Get(traceHeader),
	}
}

// writeAnswer answers the request of a call that has ended.
func (c *sessionCall) writeAnswer(w http.ResponseWriter) error {
	if c.err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return c.err
	}
	return writeDocument(w, http.StatusOK, c.message(c.answer, c.refused))
}

// turnAway answers a request that was not begun, in the SDK's words where it has some.
func turnAway(w http.ResponseWriter, id json.RawMessage, err error) {
	if errors.Is(err, errIDInUse) {
		text, ok := rawjson.String(id)
		if !ok {
			text = string(id)
		}
		refuse(w, id, jsonrpc.CodeInvalidRequest, "duplicate in-flight request ID %s", text)
		return
	}
	refuse(w, id, jsonrpc.CodeInternalError, "%v", err)
}

func noSession(w http.ResponseWriter) { http.Error(w, "session not found", http.StatusNotFound) }
