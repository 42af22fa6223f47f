package mcp

import (
	"container/list"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend"
)

const (
	// maxStreams bounds the streams that are kept for clients that reconnect: one for each request, over all sessions.
	maxStreams = 4096
	// A session's own stream, which carries what belongs to no request, is kept as long as the session, within these.
	maxOwnEvents = 64
	maxOwnBytes  = 64 << 10
)

var (
	errTooManySessions = errors.New("this agent has too many open sessions for the room that is left; close one or try again later")
	errForgotten       = errors.New("the events after this one are not kept any more")
)

// events is an [sdk.EventStore] that keeps what was sent on the streams of sessions, for clients that reconnect. The
// oldest streams are forgotten first, whole. (The SDK's own store keeps a trace of every request of a session for as long
// as the session lives.) Since the SDK tells it of every session's begin and end, it also knows which sessions there are
// and whose they are.
type events struct {
	maxBytes int
	onClosed func(agent, sessionID string) // hears of sessions that have ended; may be nil
	all      context.Context               // every session ends with it

	mu       sync.Mutex
	sessions map[string]*liveSession
	room     frontend.Shares // a place for each session
	order    *list.List      // of *kept, the oldest first; sessions' own streams are not in it
	bytes    int
}

type liveSession struct {
	agent   string
	version string             // negotiated; "" until then
	client  *sdk.ServerSession // nil until then
	streams map[string]*kept
	ids     *exactIDs
	calls   *sessionCalls
	base    context.Context // ends when the client ends the session, and every call of the session with it
	stop    context.CancelFunc
	posts   sync.WaitGroup // requests that are being answered; none is added once base has ended
}

// kept is what is left of one stream.
type kept struct {
	session, id string
	place       *list.Element
	first       int // the index of data[0]
	data        [][]byte
	bytes       int
}

func newEvents(maxSessions, maxBytes int) *events {
	return &events{maxBytes: maxBytes, all: context.Background(), room: frontend.Shares{Max: int64(maxSessions)}, sessions: map[string]*liveSession{}, order: list.New()}
}

// Open implements [sdk.EventStore]. A session's first stream is its own, which has no name.
func (e *events) Open(ctx context.Context, sessionID, streamID string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.sessions[sessionID]
	if !ok {
		agent := frontend.AgentOf(ctx)
		switch {
		case streamID != "" || agent == nil:
			return errors.New("a stream without a session")
		case !e.room.Take(agent.Name, 1):
			return errTooManySessions
		}
		s = &liveSession{agent: agent.Name, streams: map[string]*kept{}, ids: newExactIDs()}
		s.calls = newSessionCalls(s.ids)
		s.base, s.stop = context.WithCancel(e.all)
		e.sessions[sessionID] = s
	}
	k := &kept{session: sessionID, id: streamID}
	s.streams[streamID] = k
	if streamID != "" {
		k.place = e.order.PushBack(k)
		e.trim()
	}
	return nil
}

// Append implements [sdk.EventStore]. What belongs to a stream that was forgotten is not kept.
func (e *events) Append(_ context.Context, sessionID, streamID string, data []byte) error {
	if s := e.keep(sessionID, streamID, data); s != nil {
		s.calls.sent(data)
	}
	return nil
}

// keep keeps an event, and returns the session that it is of; nil if there is none.
func (e *events) keep(sessionID, streamID string, data []byte) *liveSession {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.sessions[sessionID]
	if !ok {
		return nil
	}
	k, ok := s.streams[streamID]
	if !ok {
		return s
	}
	k.data = append(k.data, data)
	k.bytes += len(data)
	e.bytes += len(data)
	for streamID == "" && (len(k.data) > maxOwnEvents || k.bytes > maxOwnBytes) {
		e.bytes -= len(k.data[0])
		k.bytes -= len(k.data[0])
		k.data, k.first = k.data[1:], k.first+1
	}
	e.trim()
	return s
}

// After implements [sdk.EventStore]. Index -1 is a client that has seen nothing: it gets what there is.
func (e *events) After(_ context.Context, sessionID, streamID string, index int) iter.Seq2[[]byte, error] {
	data, err := e.after(sessionID, streamID, index)
	return func(yield func([]byte, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		for _, d := range data {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (e *events) after(sessionID, streamID string, index int) ([][]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.sessions[sessionID]
	if !ok {
		return nil, errForgotten
	}
	k, ok := s.streams[streamID]
	if !ok {
		return nil, errForgotten
	}
	from := index + 1 - k.first
	if from < 0 {
		if index >= 0 {
			return nil, errForgotten
		}
		from = 0
	}
	return slices.Clone(k.data[min(from, len(k.data)):]), nil
}

// SessionClosed implements [sdk.EventStore].
func (e *events) SessionClosed(_ context.Context, sessionID string) error {
	if s := e.close(sessionID); s != nil && e.onClosed != nil {
		e.onClosed(s.agent, sessionID)
	}
	return nil
}

// close forgets a session; nil if there is none.
func (e *events) close(sessionID string) *liveSession {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.sessions[sessionID]
	if !ok {
		return nil
	}
	for _, k := range s.streams {
		e.forget(s, k)
	}
	delete(e.sessions, sessionID)
	s.stop()
	e.room.Leave(s.agent, 1)
	return s
}

// trim forgets the oldest streams until the rest is within bounds.
func (e *events) trim() {
	for oldest := e.order.Front(); oldest != nil && (e.bytes > e.maxBytes || e.order.Len() > maxStreams); oldest = e.order.Front() {
		k := oldest.Value.(*kept)
		e.forget(e.sessions[k.session], k)
	}
}

func (e *events) forget(s *liveSession, k *kept) {
	delete(s.streams, k.id)
	e.bytes -= k.bytes
	if k.place != nil {
		e.order.Remove(k.place)
	}
}

// full reports whether an agent can open no further session.
func (e *events) full(agent string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.room.Fits(agent, 1)
}

// negotiated notes the protocol version of a client's session.
func (e *events) negotiated(client *sdk.ServerSession, version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s, ok := e.sessions[client.ID()]; ok {
		s.client, s.version = client, version
	}
}

// adopted is the call of a session that a token stands for; nil if there is none any more.
func (e *events) adopted(sessionID, token string) *sessionCall {
	e.mu.Lock()
	s := e.sessions[sessionID]
	e.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.calls.take(token)
}

// of returns an agent's session and the version that it negotiated; nil if the agent has no such session, or ended it.
func (e *events) of(agent, sessionID string) (s *liveSession, version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.sessions[sessionID]
	if !ok || s.agent != agent || s.base.Err() != nil {
		return nil, ""
	}
	return s, s.version
}
