package mcp

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/frontend"
)

// sessionCalls are the open requests of a session over HTTP, of both kinds: those that the SDK has, and the calls that
// began without it.
type sessionCalls struct {
	ids  *exactIDs
	open *requests

	mu     sync.Mutex              // taken before that of open
	handed map[string]*sessionCall // calls whose requests the SDK got and has not begun yet, by token
	seen   time.Time               // when the SDK last got a request of the session
}

func newSessionCalls(ids *exactIDs) *sessionCalls {
	return &sessionCalls{ids: ids, open: newRequests(), handed: map[string]*sessionCall{}, seen: time.Now()}
}

// sees notes that the SDK gets a request.
func (s *sessionCalls) sees() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = time.Now()
}

// unseen is for how long the SDK got no request.
func (s *sessionCalls) unseen() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.seen)
}

// cancel ends the calls that began without the SDK and that notifications in a body speak of. It reports whether the body
// says no more than that. (Of those whose requests were handed over the SDK must not hear: it cancels a request some time
// later, and what its client begins next may have the same id.)
func (s *sessionCalls) cancel(body []byte) (all bool) {
	each := func(message json.RawMessage) {
		id, method, params := parts(message)
		name, _ := rawjson.String(method)
		if id != nil || name != methodCancelled {
			return
		}
		if _, err := jsonrpc.DecodeMessage(message); err == nil { // else it is the SDK's to refuse
			all = s.open.cancel(s.ids.key(cancelledID(params)))
		}
	}
	if rawjson.Elements(body, each) {
		return false
	}
	each(body)
	return all
}

// begin notes the requests of a body that the SDK gets. If a request cannot be begun, none is, and refused is its id.
func (s *sessionCalls) begin(body []byte) (begun map[any]*request, refused json.RawMessage, err error) {
	begun = map[any]*request{}
	each := func(message json.RawMessage) {
		id, method, _ := parts(message)
		key := s.ids.key(id)
		if method == nil || key == nil || begun[key] != nil || err != nil {
			return
		}
		this := &request{}
		if err = s.open.begin(key, this); err != nil {
			refused = id
			return
		}
		begun[key] = this
	}
	if !rawjson.Elements(body, each) {
		each(body)
	}
	if err != nil {
		s.drop(begun)
	}
	return begun, refused, err
}

// drop takes out requests that the SDK has refused.
func (s *sessionCalls) drop(begun map[any]*request) {
	for key, this := range begun {
		s.open.drop(key, this)
	}
}

// sent takes out the request that a message of the SDK answers, if it answers one.
func (s *sessionCalls) sent(message []byte) {
	id, method, _ := parts(message)
	if id == nil || method != nil {
		return
	}
	this := s.open.end(s.ids.key(id))
	s.open.answered(this)
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.handed, func(_ string, c *sessionCall) bool { return &c.request == this }) // it was answered without being begun
}

// run runs a call that was begun. It reports whether the SDK has served the request instead.
func (s *sessionCalls) run(c *sessionCall, from *frontend.Call) (handed bool) {
	defer func() { // the SDK is not left with the request even if the call panics
		if handed = s.end(c); handed {
			<-c.served
		}
	}()
	c.run(from)
	return false
}

// end notes that a call has ended, and reports whether its request was handed over. One that was not is not open any more.
func (s *sessionCalls) end(c *sessionCall) (handed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.ended = true; !c.handed {
		s.open.drop(c.key, &c.request)
	}
	s.open.calls.Done()
	close(c.done)
	return c.served != nil
}

// handOver notes that the SDK gets the request of a call, unless the call has ended.
func (s *sessionCalls) handOver(c *sessionCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.ended {
		return false
	}
	c.token, c.served, c.handed = rand.Text(), make(chan struct{}), true
	s.handed[c.token] = c
	return true
}

// takeBack is for a request that the SDK refused after all. The call goes on, and speaks to nobody.
func (s *sessionCalls) takeBack(c *sessionCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.handed, c.token)
	if c.handed = false; c.ended {
		s.open.drop(c.key, &c.request)
	}
	c.leave()
}

// take returns the call of a token, once; nil if there is none.
func (s *sessionCalls) take(token string) *sessionCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.handed[token]
	delete(s.handed, token)
	return c
}
