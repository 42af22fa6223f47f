package mcp

import (
	"context"
	"time"
)

// The SDK ends a session only when its calls have ended, without telling them, and does not send their answers then. So
// a session that its client ends is ended here first: its calls are cancelled, and what they answer still goes out.

// lastAnswers is how long the answers to cancelled calls may take: a client that does not read them does not hold up the
// end of the session.
const lastAnswers = 2 * time.Second

// post counts a request of a session in, unless the session has ended. Call posts.Done when it is answered.
func (e *events) post(s *liveSession) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.base.Err() != nil {
		return false
	}
	s.posts.Add(1)
	return true
}

// end cancels the calls of a session and waits, for a while, for their answers. It reports false if another request
// already ended the session.
func (e *events) end(s *liveSession) bool {
	e.mu.Lock()
	if s.base.Err() != nil {
		e.mu.Unlock()
		return false
	}
	s.stop()
	e.mu.Unlock()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		s.posts.Wait()
	}()
	timer := time.NewTimer(lastAnswers)
	defer timer.Stop()
	select {
	case <-answered:
	case <-timer.C:
	}
	return true
}

// base ends with a session of HTTP; for anything else it is otherwise.
func (e *events) base(sessionID string, otherwise context.Context) context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s, ok := e.sessions[sessionID]; ok {
		return s.base
	}
	return otherwise
}

// stopAll ends an agent's sessions and cancels their calls. It waits for nothing.
func (e *events) stopAll(agent string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.sessions {
		if s.agent == agent {
			s.stop()
		}
	}
}
