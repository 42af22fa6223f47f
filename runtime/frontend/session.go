package frontend

import (
	"cmp"
	"container/list"
	"context"
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
)

// Sessions knows the sessions of all agents until they were idle for too long, and gives one to clients that name none: one
// for each agent and client. The zero value is ready to use.
type Sessions struct {
	// Idle ends a session without calls; 0 is 30 minutes.
	Idle time.Duration
	// OnEnd hears of every session that has ended, once, while [Sessions.Run] runs. It may be nil.
	OnEnd func(agent, session string)

	mu      sync.Mutex
	live    map[string]*live     // by full id
	unnamed map[unnamedKey]*live // of those, the ones that nobody named
	order   list.List            // of *live, the one that was idle longest first
}

// live is a session that has not ended.
type live struct {
	agent, id string
	key       unnamedKey // zero for one that was named
	last      time.Time
	place     *list.Element
}

type unnamedKey struct{ agent, client string }

// ID returns the session's full id, which begins with the agent's name: no agent can name another one's session.
func (s *Sessions) ID(agent, named, client string) string {
	now := time.Now()
	s.mu.Lock()
	l, gone := s.find(agent, cleanName(named), cleanName(client), now)
	l.last = now
	s.order.MoveToBack(l.place)
	s.mu.Unlock()
	s.tell(gone)
	return l.id
}

// find returns a session, begun if need be, and those that ended for it. The mutex is held.
func (s *Sessions) find(agent, named, client string, now time.Time) (l *live, gone []*live) {
	l = &live{agent: agent, id: agent + "/" + named}
	if named == "" {
		l.key = unnamedKey{agent, client}
		if found, ok := s.unnamed[l.key]; ok {
			if !s.over(found, now) {
				return found, nil
			}
			gone = append(gone, s.remove(found))
		}
		l.id += rand.Text()
	} else if found, ok := s.live[l.id]; ok {
		return found, nil
	}
	if len(s.live) >= maxLive {
		gone = append(gone, s.remove(s.oldest()))
	}
	if s.live == nil {
		s.live, s.unnamed = map[string]*live{}, map[unnamedKey]*live{}
	}
	s.live[l.id] = l
	if named == "" {
		s.unnamed[l.key] = l
	}
	l.place = s.order.PushBack(l)
	return l, gone
}

// Run looks for sessions that have been idle for too long, until ctx ends.
func (s *Sessions) Run(ctx context.Context) error {
	tick := time.NewTicker(min(sweepEvery, s.idle()))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			var gone []*live
			s.mu.Lock()
			for l := s.oldest(); l != nil && s.over(l, now); l = s.oldest() {
				gone = append(gone, s.remove(l))
			}
			s.mu.Unlock()
			s.tell(gone)
		}
	}
}

// End ends the session of an agent that has a name: the client said that it is over.
func (s *Sessions) End(agent, named string) {
	if named = cleanName(named); named == "" {
		return
	}
	var gone []*live
	s.mu.Lock()
	if l, ok := s.live[agent+"/"+named]; ok {
		gone = append(gone, s.remove(l))
	}
	s.mu.Unlock()
	s.tell(gone)
}

func (s *Sessions) idle() time.Duration { return cmp.Or(s.Idle, sessionIdle) }

func (s *Sessions) over(l *live, now time.Time) bool { return now.Sub(l.last) >= s.idle() }

// oldest is the session that was idle longest; nil if there is none. The mutex is held.
func (s *Sessions) oldest() *live {
	if first := s.order.Front(); first != nil {
		return first.Value.(*live)
	}
	return nil
}

// remove takes a session out, and returns it to be told of. The mutex is held.
func (s *Sessions) remove(l *live) *live {
	delete(s.live, l.id)
	delete(s.unnamed, l.key)
	s.order.Remove(l.place)
	return l
}

func (s *Sessions) tell(gone []*live) {
	if s.OnEnd == nil {
		return
	}
	for _, l := range gone {
		s.OnEnd(l.agent, l.id)
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
