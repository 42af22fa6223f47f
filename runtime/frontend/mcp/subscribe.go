package mcp

import (
	"context"
	"encoding/json"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	// maxWatched bounds the subscriptions of all agents' sessions; see [frontend.Shares].
	maxWatched = 10_000
	// maxWatchedURI bounds the address of a resource that is watched, in bytes: it is kept as long as the session.
	maxWatchedURI = 8 << 10
)

// watched divides the places for subscriptions between agents. The zero value has [maxWatched].
type watched struct {
	mu   sync.Mutex
	room frontend.Shares
}

func (w *watched) take(agent string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.room.Max = maxWatched
	if !w.room.Take(agent, 1) {
		return tool.Errorf(tool.RateLimited, "this agent watches too many resources for the room that is left; unsubscribe from some, or close sessions that are no longer used")
	}
	return nil
}

func (w *watched) leave(agent string, n int) {
	if n == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.room.Leave(agent, int64(n))
}

// subscriptions are what an agent's clients want to hear of. A library is asked once for each resource, however many
// sessions want it; sessions that ended are noticed when the resource changes next, or with the next subscription.
type subscriptions struct {
	mu    sync.Mutex
	byURI map[string]*subscription
	uris  map[*sdk.ServerSession]map[string]struct{} // that a session subscribed to

	updated map[string]struct{} // resources that changed and were not told yet
	telling bool                // somebody is telling
}

type subscription struct {
	sessions map[*sdk.ServerSession]int // subscriptions of each: a session may have several streams
	cancel   func()
}

// subscribe is called by the SDK, which then notes the session.
func (a *agentServer) subscribe(ctx context.Context, req *sdk.SubscribeRequest) error {
	uri := req.Params.URI
	at, ok := a.shelves().resource(uri)
	params, err := uriParams(ok, at.own, uri)
	if err != nil {
		return err
	}
	r := newReach(ctx, a, req, nil, round{})
	r.askNothing()
	_, _, err = fetch(ctx, a, r, req, &frontend.Fetch{
		Library: at.library, Unknown: sdk.ResourceNotFoundError(uri), Method: provider.Subscribe, Params: params,
		Do: func(ctx context.Context, call *tool.Call, _ *provider.Host) (json.RawMessage, error) {
			return nil, a.watch(ctx, req.Session, uri, at.library, call.Arguments)
		},
	})
	return err
}

// watch subscribes a session to what its clients call uri.
func (a *agentServer) watch(ctx context.Context, session *sdk.ServerSession, uri string, library provider.Library, params json.RawMessage) error {
	var named struct{ URI string }
	if err := json.Unmarshal(params, &named); err != nil {
		return tool.Errorf(tool.InvalidArguments, "the resource to watch cannot be read: %w", err)
	}
	if len(uri) > maxWatchedURI {
		return tool.Errorf(tool.InvalidArguments, "the address has %d bytes, and %d are the limit for a resource that is watched", len(uri), maxWatchedURI)
	}
	a.prune()
	agent := a.agent.Load().Name
	if err := a.owner.watched.take(agent); err != nil {
		return err
	}
	s := &a.subscribed
	if s.join(uri, session) {
		return nil
	}
	cancel, err := library.Subscribe(ctx, named.URI, func() { a.resourceUpdated(uri) })
	if err != nil {
		a.owner.watched.leave(agent, 1)
		return err
	}
	if !s.begin(uri, session, cancel) { // another session was faster
		cancel()
	}
	return nil
}

// join adds a session to a subscription that there is.
func (s *subscriptions) join(uri string, session *sdk.ServerSession) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.byURI[uri]
	if ok {
		s.add(x, uri, session)
	}
	return ok
}

// add adds a session to a subscription. The mutex is held.
func (s *subscriptions) add(x *subscription, uri string, session *sdk.ServerSession) {
	x.sessions[session]++
	of, ok := s.uris[session]
	if !ok {
		of = map[string]struct{}{}
		s.uris[session] = of
	}
	of[uri] = struct{}{}
}

// drop takes a session out of a subscription, and returns what ends it if it was the last. The mutex is held.
func (s *subscriptions) drop(uri string, session *sdk.ServerSession) (cancel func()) {
	x := s.byURI[uri]
	delete(x.sessions, session)
	if delete(s.uris[session], uri); len(s.uris[session]) == 0 {
		delete(s.uris, session)
	}
	if len(x.sessions) > 0 {
		return nil
	}
	delete(s.byURI, uri)
	return x.cancel
}

// begin notes a new subscription, or joins one that began meanwhile and reports false.
func (s *subscriptions) begin(uri string, session *sdk.ServerSession, cancel func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x, ok := s.byURI[uri]; ok {
		s.add(x, uri, session)
		return false
	}
	if s.byURI == nil {
		s.byURI, s.uris = map[string]*subscription{}, map[*sdk.ServerSession]map[string]struct{}{}
	}
	x := &subscription{map[*sdk.ServerSession]int{}, cancel}
	s.byURI[uri] = x
	s.add(x, uri, session)
	return true
}

func (a *agentServer) unsubscribe(_ context.Context, req *sdk.UnsubscribeRequest) error {
	s := &a.subscribed
	s.mu.Lock()
	x, ok := s.byURI[req.Params.URI]
	had := ok && x.sessions[req.Session] > 0
	var cancel func()
	if had {
		if x.sessions[req.Session]--; x.sessions[req.Session] == 0 {
			cancel = s.drop(req.Params.URI, req.Session)
		}
	}
	s.mu.Unlock()
	if had {
		a.owner.watched.leave(a.agent.Load().Name, 1)
	}
	if cancel != nil {
		cancel()
	}
	return nil
}

// resourceUpdated has the sessions told that subscribed. It returns at once, since a library calls it from where it takes in
// everything else that its server says; what changes again before it was told is told once.
func (a *agentServer) resourceUpdated(uri string) {
	s := &a.subscribed
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.updated == nil {
		s.updated = map[string]struct{}{}
	}
	s.updated[uri] = struct{}{}
	if !s.telling {
		s.telling = a.owner.goWork(a.tellUpdates)
	}
}

// tellUpdates tells of changed resources until there are no more.
func (a *agentServer) tellUpdates() {
	for uris := a.subscribed.takeUpdated(); len(uris) > 0; uris = a.subscribed.takeUpdated() {
		a.prune()
		for uri := range uris {
			if err := a.sdk.ResourceUpdated(a.owner.base, &sdk.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
				a.owner.options.Logger.Debug("a changed resource was not told", "uri", uri, "error", err)
			}
		}
	}
}

func (s *subscriptions) takeUpdated() map[string]struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	uris := s.updated
	s.updated = nil
	s.telling = len(uris) > 0
	return uris
}

// prune ends what only sessions that have ended wanted.
func (a *agentServer) prune() {
	alive := map[*sdk.ServerSession]bool{}
	for session := range a.sdk.Sessions() {
		alive[session] = true
	}
	var over []func()
	left := 0
	s := &a.subscribed
	s.mu.Lock()
	for session, uris := range s.uris {
		if alive[session] {
			continue
		}
		for uri := range uris {
			left += s.byURI[uri].sessions[session]
			if cancel := s.drop(uri, session); cancel != nil {
				over = append(over, cancel)
			}
		}
	}
	s.mu.Unlock()
	a.owner.watched.leave(a.agent.Load().Name, left)
	for _, cancel := range over {
		cancel()
	}
}

// unsubscribeAll ends every subscription, with the agent.
func (a *agentServer) unsubscribeAll() {
	s := &a.subscribed
	s.mu.Lock()
	all := s.byURI
	s.byURI, s.uris = nil, nil
	s.mu.Unlock()
	left := 0
	for _, x := range all {
		for _, n := range x.sessions {
			left += n
		}
		x.cancel()
	}
	a.owner.watched.leave(a.agent.Load().Name, left)
}
