package guard

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// maxCalls bounds the different failing calls that are counted in one session; the oldest are forgotten.
const maxCalls = 128

// Call is one call as the guard sees it.
type Call struct {
	Agent, Session string
	Tool           tool.Name
	// Arguments are as the agent sent them, before anything changed them: the same in Admit and Count.
	Arguments json.RawMessage
	// Definition is nil if the tool is not known.
	Definition *tool.Definition
}

// Outcome is how a call ended.
type Outcome struct {
	Err     *tool.Error // nil if it ran and gave a result
	IsError bool        // the result says that the tool failed
}

// Judgement is what the guard has to say about an outcome.
type Judgement struct {
	Note string // for the agent, beside the result; "" if there is nothing to say
	// Err takes the place of a refusal that was repeated too often.
	Err *tool.Error
}

// loops counts failures by session. Its user holds the guard's lock.
type loops struct {
	forget   time.Duration
	max      int
	sessions map[sessionKey]*list.Element // of *session
	recent   *list.List                   // the last used in front
}

type sessionKey struct{ agent, session string }

type session struct {
	key   sessionKey
	calls map[[sha256.Size]byte]*count
	tools map[tool.Name]*count
}

type count struct {
	// tried are the failures that speak against the call itself. Only they keep it from being tried again.
	tried int
	// away are the latest failures that say nothing of the call, since the tool could not be had. They end a loop as long
	// as that is so, and are forgotten as soon as the tool is there: it runs then, and what it says is heard.
	away int
	last time.Time
}

func (l *loops) init(sessions int, forget time.Duration) {
	l.max, l.forget = sessions, forget
	if l.max == 0 {
		l.max = DefaultSessions
	}
	if l.forget == 0 {
		l.forget = DefaultForget
	}
	l.sessions, l.recent = map[sessionKey]*list.Element{}, list.New()
}

// find returns a session's counts, nil if there are none and none are wanted.
func (l *loops) find(c *Call, create bool) *session {
	key := sessionKey{c.Agent, c.Session}
	if e, ok := l.sessions[key]; ok {
		l.recent.MoveToFront(e)
		return e.Value.(*session)
	}
	if !create {
		return nil
	}
	if len(l.sessions) >= l.max {
		oldest := l.recent.Back()
		delete(l.sessions, oldest.Value.(*session).key)
		l.recent.Remove(oldest)
	}
	s := &session{key: key, calls: map[[sha256.Size]byte]*count{}, tools: map[tool.Name]*count{}}
	l.sessions[key] = l.recent.PushFront(s)
	return s
}

// drop forgets a session that has no counts.
func (l *loops) drop(s *session) {
	if len(s.calls) == 0 && len(s.tools) == 0 {
		l.recent.Remove(l.sessions[s.key])
		delete(l.sessions, s.key)
	}
}

// admit refuses the call that would be the one too many.
func (l *loops) admit(c *Call, limits *Limits, now time.Time) *tool.Error {
	s := l.find(c, false)
	if s == nil {
		return nil
	}
	if n := failures(s.calls, c.digest(), now, l.forget) + 1; limits.SameCallBlock > 0 && n >= limits.SameCallBlock {
		return blockedCall(c, n-1)
	}
	if n := failures(s.tools, c.Tool, now, l.forget) + 1; limits.SameToolBlock > 0 && n >= limits.SameToolBlock {
		return blockedTool(c, n-1)
	}
	return nil
}

func blockedCall(c *Call, n int) *tool.Error {
	return tool.Errorf(tool.LoopBlocked, "%s was not run: the same call failed %d times in this session and would fail again; change the arguments or go on without it", c.Tool, n).
		With("failures", n)
}

func blockedTool(c *Call, n int) *tool.Error {
	return tool.Errorf(tool.LoopBlocked, "%s was not run: it failed %d times in this session; do not call it again now, use another way or tell the user what does not work", c.Tool, n).
		With("failures", n)
}

// Count hears of the end of every call, whichever stage refused it.
func (g *Guard) Count(c *Call, out *Outcome) Judgement {
	limits := g.limits(c.Agent)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.loops.count(c, out, &limits, time.Now())
}

func (l *loops) count(c *Call, out *Outcome, limits *Limits, now time.Time) Judgement {
	failed := out.Err != nil || out.IsError
	if failed && !counts(c, out) {
		return Judgement{}
	}
	s := l.find(c, failed)
	if s == nil {
		return Judgement{}
	}
	digest := c.digest()
	if !failed {
		delete(s.calls, digest)
		delete(s.tools, c.Tool)
		l.drop(s)
		return Judgement{}
	}
	tried := out.Err == nil || !away(out.Err.Code)
	calls := fail(s.calls, digest, now, l.forget, tried)
	tools := fail(s.tools, c.Tool, now, l.forget, tried)
	refused := out.Err != nil && !ran(out.Err.Code)
	switch {
	case refused && limits.SameCallBlock > 0 && calls >= limits.SameCallBlock:
		return Judgement{Err: blockedCall(c, calls)}
	case refused && limits.SameToolBlock > 0 && tools >= limits.SameToolBlock:
		return Judgement{Err: blockedTool(c, tools)}
	case limits.SameCallWarn > 0 && calls >= limits.SameCallWarn:
		return Judgement{Note: fmt.Sprintf("This same call of %s has now failed %d times. Do not repeat it unchanged.", c.Tool, calls)}
	case limits.SameToolWarn > 0 && tools >= limits.SameToolWarn:
		return Judgement{Note: fmt.Sprintf("Calls of %s have now failed %d times in a row. Look at its description again, or use another way.", c.Tool, tools)}
	}
	return Judgement{}
}

// counts reports whether a failure says anything about a loop. What asks to be repeated does not; nor does a tool that is
// polled: one that is read-only and idempotent and says that the same call may work later.
func counts(c *Call, out *Outcome) bool {
	if out.Err == nil {
		return true
	}
	switch out.Err.Code {
	case tool.Cancelled, tool.ShuttingDown, tool.RateLimited, tool.ApprovalPending, tool.LoopBlocked:
		return false
	}
	return !out.Err.Retryable || !polled(c.Definition)
}

func polled(d *tool.Definition) bool {
	return d != nil && d.Annotations.IsReadOnly() && d.Annotations.IsIdempotent()
}

// ran reports whether a call with this error may have reached its tool. Such an error is news and stays as it is.
func ran(code tool.Code) bool {
	switch code {
	case tool.OutcomeUnknown, tool.Timeout, tool.ResultTooLarge, tool.PluginPanic, tool.ToolFailed, tool.DownstreamFailed, tool.BadAnswer:
		return true
	}
	return false
}

// away reports whether an error says that the tool could not be had, whatever the call.
func away(code tool.Code) bool {
	switch code {
	case tool.UnknownTool, tool.NotAvailable, tool.ProviderStarting, tool.ProviderDown, tool.ProviderQuarantined, tool.NotSent, tool.AuditUnavailable:
		return true
	}
	return false
}

// failures is the number that still counts against a call.
func failures[K comparable](m map[K]*count, key K, now time.Time, forget time.Duration) int {
	if n := m[key]; n != nil && now.Sub(n.last) < forget {
		return n.tried
	}
	return 0
}

// fail counts one more failure and returns the number of those of its kind.
func fail[K comparable](m map[K]*count, key K, now time.Time, forget time.Duration, tried bool) int {
	n := m[key]
	if n == nil {
		if len(m) >= maxCalls {
			evict(m)
		}
		n = &count{}
		m[key] = n
	}
	if now.Sub(n.last) >= forget {
		n.tried, n.away = 0, 0
	}
	n.last = now
	if tried {
		n.tried, n.away = n.tried+1, 0
		return n.tried
	}
	n.away++
	return n.away
}

func evict[K comparable](m map[K]*count) {
	var oldest K
	var at time.Time
	for k, n := range m {
		if at.IsZero() || n.last.Before(at) {
			oldest, at = k, n.last
		}
	}
	delete(m, oldest)
}

// digest is the same for the same tool and the same arguments, however they are written.
func (c *Call) digest() [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte(c.Tool))
	h.Write([]byte{0})
	h.Write(canonical(c.Arguments))
	return [sha256.Size]byte(h.Sum(nil))
}

// canonical sorts keys and drops spaces. What is no JSON stays as it is.
func canonical(raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

// EndSession forgets a session that is over.
func (g *Guard) EndSession(agent, session string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := sessionKey{agent, session}
	if e, ok := g.loops.sessions[key]; ok {
		g.loops.recent.Remove(e)
		delete(g.loops.sessions, key)
	}
}
