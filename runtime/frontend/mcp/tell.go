package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// tellTime bounds how long one session is told of one change: a client that makes no room for it for so long has its
// connection closed by what carries it.
const tellTime = unreadTime + 5*time.Second

// tellings are the changes that sessions are still to be told of. The SDK tells one session after the other, and a client
// that has stopped reading would hold up those behind it: so each session has a sender of its own.
type tellings struct {
	mu   sync.Mutex
	left map[*sdk.ServerSession]map[string]func() // by what is said: while it waits, it need not be said again
}

// tells reports whether a notification of ours says no more than that something changed.
func tells(method string) bool {
	return method == methodUpdated || strings.HasSuffix(method, "/list_changed")
}

// send stands behind everything that the SDK sends to clients.
func (a *agentServer) send(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		session, ok := req.GetSession().(*sdk.ServerSession)
		if !ok || !tells(method) {
			return next(ctx, method, req)
		}
		params, err := json.Marshal(req.GetParams())
		if err != nil {
			return nil, err
		}
		a.tell(session, method+" "+string(params), func() {
			ctx, cancel := context.WithTimeout(a.base, tellTime)
			defer cancel()
			if _, err := next(ctx, method, req); err != nil {
				a.owner.options.Logger.Debug("a change was not told", "session", session.ID(), "method", method, "error", err)
			}
		})
		return nil, nil
	}
}

// tell has something said to a session, after what is being said to it.
func (a *agentServer) tell(session *sdk.ServerSession, what string, say func()) {
	t := &a.told
	t.mu.Lock()
	defer t.mu.Unlock()
	if left, busy := t.left[session]; busy {
		left[what] = say
		return
	}
	if t.left == nil {
		t.left = map[*sdk.ServerSession]map[string]func(){}
	}
	t.left[session] = map[string]func(){what: say}
	if !a.owner.goWork(func() { t.say(session) }) {
		delete(t.left, session)
	}
}

// say says what is left for a session, until nothing is.
func (t *tellings) say(session *sdk.ServerSession) {
	for left := t.take(session); len(left) > 0; left = t.take(session) {
		for _, say := range left {
			say()
		}
	}
}

// take takes out what is left for a session, and ends its entry where nothing is.
func (t *tellings) take(session *sdk.ServerSession) map[string]func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := t.left[session]
	if len(left) == 0 {
		delete(t.left, session)
		return nil
	}
	t.left[session] = map[string]func(){}
	return left
}
