package mcp

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

// retryMillis is how long a client waits before it takes up a broken stream again.
const retryMillis = "1000"

// router chooses between the SDK's two handlers: one with sessions, for clients up to 2025-11-25, and one without, for
// 2026-07-28. The version header decides, then the session id; where neither is there, the body does.
func (s *Server) router() http.Handler {
	server := func(r *http.Request) *sdk.Server {
		if a := s.server(frontend.AgentOf(r.Context())); a != nil {
			return a.sdk
		}
		return nil
	}
	options := sdk.StreamableHTTPOptions{
		Logger:                     s.sdkLog,
		DisableLocalhostProtection: true, // the gate knows more names
		MaxRequestBodyBytes:        s.options.Gate.MaxBody(),
	}
	withSessions, without := options, options
	// The SDK sees a request of a session that is in use after so much of its idle time at the latest.
	withSessions.EventStore, withSessions.SessionTimeout = s.events, s.options.SessionIdle+s.options.SessionIdle/unseenPart
	without.Stateless, without.PropagateRequestCancellation = true, true
	r := &router{
		server:       s,
		withSessions: sdk.NewStreamableHTTPHandler(server, &withSessions),
		without:      sdk.NewStreamableHTTPHandler(server, &without),
	}
	return r
}

type router struct {
	server                *Server
	withSessions, without http.Handler
	last                  lastClient
}

func (t *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if t.server.base.Err() != nil {
		stopping(w)
		return
	}
	r.Header.Del(adoptionHeader)
	id := r.Header.Get(sessionHeader)
	switch twice := saidTwice(r.Header); {
	case twice != "":
		refuseHeader(w, twice)
	case r.Header.Get(versionHeader) >= stateless:
		t.serveStateless(w, r)
	case id != "":
		t.session(w, r, id)
	case r.Method != http.MethodPost:
		t.withSessions.ServeHTTP(w, r) // which says what is wrong
	default:
		t.look(w, r)
	}
}

func stopping(w http.ResponseWriter) {
	frontend.WriteError(w, http.StatusServiceUnavailable, tool.Errorf(tool.ShuttingDown, "hermesd is stopping; connect again in a moment"))
}

// session serves a request that belongs to a session: of this agent, at the version that it negotiated, also where the
// request names none or another. A version that does not exist is left for the SDK to refuse.
func (t *router) session(w http.ResponseWriter, r *http.Request, id string) {
	events := t.server.events
	session, version := events.of(frontend.AgentOf(r.Context()).Name, id)
	said := r.Header.Get(versionHeader)
	known := said == "" || said == version || slices.Contains(sdk.SupportedProtocolVersions(), said)
	if version != "" && known && said != version {
		r.Header.Set(versionHeader, version)
	}
	switch {
	case session == nil:
	case r.Method == http.MethodPost:
		t.post(w, r, session, version != "" && known)
		return
	case r.Method == http.MethodDelete && known && !events.end(session):
		session = nil
	}
	if session == nil {
		noSession(w)
		return
	}
	t.withSessions.ServeHTTP(&primed{ResponseWriter: exactly(w, r, nil, session.ids)}, r)
}

// look serves a request without a version and without a session by what its body is: initialize opens a session,
// everything else is served without one.
func (t *router) look(w http.ResponseWriter, r *http.Request) {
	raw, ok := takeIn(w, r)
	if !ok {
		return
	}
	if !opensSession(raw) {
		t.without.ServeHTTP(exactly(w, r, raw, newExactIDs()), r)
		return
	}
	if t.server.events.full(frontend.AgentOf(r.Context()).Name) {
		w.Header().Set("Retry-After", "30")
		frontend.WriteError(w, http.StatusServiceUnavailable, tool.Errorf(tool.RateLimited, "%w", errTooManySessions))
		return
	}
	t.withSessions.ServeHTTP(&primed{ResponseWriter: w}, r)
}

// opensSession reports whether a body is, or as a batch contains, an initialize request.
func opensSession(body []byte) (opens bool) {
	each := func(message json.RawMessage) {
		rawjson.Members(message, func(key string, value json.RawMessage) {
			if key == "method" {
				method, _ := rawjson.String(value)
				opens = opens || method == methodInitialize
			}
		})
	}
	if !rawjson.Elements(body, each) {
		each(body)
	}
	return opens
}

// primed adds to the SDK's first event of a stream, which gives the client an id to take the stream up by, how long to
// wait before it does (SEP-1699).
type primed struct {
	http.ResponseWriter
	begun bool
}

const primeEvent = "event: prime\n"

func (p *primed) Write(b []byte) (int, error) {
	if p.begun {
		return p.ResponseWriter.Write(b)
	}
	p.begun = true
	rest, ok := strings.CutPrefix(string(b), primeEvent)
	if !ok {
		return p.ResponseWriter.Write(b)
	}
	if _, err := io.WriteString(p.ResponseWriter, primeEvent+"retry: "+retryMillis+"\n"+rest); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Unwrap lets [http.ResponseController] flush.
func (p *primed) Unwrap() http.ResponseWriter { return p.ResponseWriter }
