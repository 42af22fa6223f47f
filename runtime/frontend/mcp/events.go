package mcp

import (
	"context"
	"errors"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend"
)

var errTooManySessions = errors.New("too many sessions are open; close one or try again later")

// events keeps what was sent on the streams of sessions, for clients that reconnect, within a bound of bytes. Since the
// SDK tells it of every session's begin and end, it also knows which sessions live and whose they are.
type events struct {
	*sdk.MemoryEventStore
	max int

	mu       sync.Mutex
	sessions map[string]*liveSession
}

type liveSession struct {
	agent   string
	version string // negotiated; "" until then
}

func newEvents(maxSessions, maxBytes int) *events {
	store := sdk.NewMemoryEventStore(nil)
	store.SetMaxBytes(maxBytes)
	return &events{MemoryEventStore: store, max: maxSessions, sessions: map[string]*liveSession{}}
}

// Open implements [sdk.EventStore]. A session's first stream is the one without a name.
func (e *events) Open(ctx context.Context, sessionID, streamID string) error {
	if streamID == "" {
		agent := frontend.AgentOf(ctx)
		if agent == nil {
			return errors.New("a session without an agent")
		}
		e.mu.Lock()
		if len(e.sessions) >= e.max {
			e.mu.Unlock()
			return errTooManySessions
		}
		e.sessions[sessionID] = &liveSession{agent: agent.Name}
		e.mu.Unlock()
	}
	return e.MemoryEventStore.Open(ctx, sessionID, streamID)
}

// SessionClosed implements [sdk.EventStore].
func (e *events) SessionClosed(ctx context.Context, sessionID string) error {
	e.mu.Lock()
	delete(e.sessions, sessionID)
	e.mu.Unlock()
	return e.MemoryEventStore.SessionClosed(ctx, sessionID)
}

// full reports whether no further session can be opened.
func (e *events) full() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sessions) >= e.max
}

// negotiated notes the protocol version of a session.
func (e *events) negotiated(sessionID, version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s, ok := e.sessions[sessionID]; ok {
		s.version = version
	}
}

// of returns the negotiated version of an agent's session, and whether the agent has such a session.
func (e *events) of(agent, sessionID string) (version string, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.sessions[sessionID]
	if !ok || s.agent != agent {
		return "", false
	}
	return s.version, true
}
