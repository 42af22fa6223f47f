package frontend

import (
	"crypto/rand"
	"strings"
	"sync"
	"time"
)

const (
	// SessionHeader names a session in HTTP requests that carry no MCP session.
	SessionHeader = "X-Hermes-Session"
	// SessionMeta is the key of _meta that does the same in an MCP request.
	SessionMeta = "hermesd/session"

	// sessionIdle ends a session, unless [Sessions.Idle] says otherwise.
	sessionIdle = 30 * time.Minute
	// sweepEvery is how often sessions that have ended are looked for.
	sweepEvery = time.Minute
	// maxLive bounds the sessions whose end is waited for; the one that was idle longest ends first.
	maxLive = 10_000
	// maxSessionName bounds a session name that a client chose, in bytes.
	maxSessionName = 128
	// maxImplicit bounds the sessions that nobody named; the one that was idle longest goes first.
	maxImplicit = 4096
)

// Sessions knows the sessions of all agents until they were idle for too long, and gives one to clients that name none: one
// for each agent and client. The zero value is ready to use.
type Sessions struct {
	// Idle ends a session without calls; 0 is 30 minutes.
	Idle time.Duration
	// OnEnd hears of every session that has ended, once, while [Sessions.Run] runs. It may be nil.
	OnEnd func(agent, session string)

	mu       sync.Mutex
	implicit map[implicitKey]*implicit
	live     map[string]*live // by full id
}

// live is a session that has not ended.
type live struct {
	agent, id string
	last      time.Time
}

type implicitKey struct{ agent, client string }

type implicit struct {
	id   string
	last time.Time
}

// ID returns the session's full id, which begins with the agent's name: no agent can name another one's session.
func (s *Sessions) ID(agent, named, client string) string {
	id := s.find(agent, named, client)
	s.touch(agent, id)
	return id
}

func (s *Sessions) find(agent, named, client string) string {
	if named = cleanName(named); named != "" {
		return agent + "/" + named
	}
	key := implicitKey{agent, cleanName(client)}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.implicit == nil {
		s.implicit = map[implicitKey]*implicit{}
	}
	if found, ok := s.implicit[key]; ok && now.Sub(found.last) < s.idle() {
		found.last = now
		return found.id
	}
	s.prune(now)
	made := &implicit{id: agent + "/" + rand.Text(), last: now}
	s.implicit[key] = made
	return made.id
}

// prune drops what has ended and, if that makes no room, what was idle longest.
func (s *Sessions) prune(now time.Time) {
	if len(s.implicit) < maxImplicit {
		return
	}
	var oldest implicitKey
	var since time.Time
	for key, session := range s.implicit {
		if now.Sub(session.last) >= s.idle() {
			delete(s.implicit, key)
			continue
		}
		if since.IsZero() || session.last.Before(since) {
			oldest, since = key, session.last
		}
	}
	if len(s.implicit) >= maxImplicit {
		delete(s.implicit, oldest)
	}
}

// cleanName keeps what logs and the audit can show: printable ASCII, bounded.
func cleanName(name string) string {
	name = name[:min(len(name), maxSessionName)]
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, name)
}
