package mcpclient

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxWatched bounds the resources of one server that are subscribed to.
const maxWatched = 1000

// watchers are those who want to hear of changes of resources, by the server's own URI. The server is asked once for each
// URI, and again after a restart.
type watchers struct {
	mu   sync.Mutex
	last int // id of a listener
	of   map[string]*watched
}

// watched is one resource, and what the server was asked about it. It is there while somebody holds it.
type watched struct {
	uri  string
	turn chan struct{} // capacity 1: full while the server is being asked, so that it hears things in their order

	// Under the mutex of the watchers.
	holders   int // listeners, and those who ask the server
	listeners map[int]func()
	told      *session // the one that took the subscription; nil for none
}

// hold returns the resource, until its holder calls release; nil if there are too many.
func (w *watchers) hold(uri string) *watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.of[uri]
	if x == nil {
		if len(w.of) >= maxWatched {
			return nil
		}
		if w.of == nil {
			w.of = map[string]*watched{}
		}
		x = &watched{uri: uri, turn: make(chan struct{}, 1), listeners: map[int]func(){}}
		w.of[uri] = x
	}
	x.holders++
	return x
}

func (w *watchers) release(x *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x.holders--; x.holders == 0 {
		delete(w.of, x.uri)
	}
}

// holdAll returns every resource; each must be released.
func (w *watchers) holdAll() []*watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.of {
		x.holders++
	}
	return slices.Collect(maps.Values(w.of))
}

func (w *watchers) listen(x *watched, updated func()) (id int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	x.listeners[w.last] = updated
	return w.last
}

// leave ends a listener. It returns the session that has to hear that it was the last, or nil.
func (w *watchers) leave(x *watched, id int) (told *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(x.listeners, id)
	if len(x.listeners) > 0 {
		return nil
	}
	return x.told
}

func (w *watchers) tell(uri string) {
	w.mu.Lock()
	var list []func()
	if x := w.of[uri]; x != nil {
		list = slices.Collect(maps.Values(x.listeners))
	}
	w.mu.Unlock()
	for _, f := range list {
		f()
	}
}

// any reports whether the server has something to tell of, and so has to run.
func (w *watchers) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.of) > 0
}

// state says whether a resource has listeners, and which session took the subscription.
func (w *watchers) state(x *watched) (wanted bool, told *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(x.listeners) > 0, x.told
}

func (w *watchers) note(x *watched, told *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x.told = told
}

// Subscribe implements [provider.Library]. uri is the server's own. A server that has subscribers is not idle.
func (p *Provider) Subscribe(ctx context.Context, uri string, updated func()) (cancel func(), err error) {
	s, release, err := p.supervisor.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if s.has.Resources == nil || !s.has.Resources.Subscribe {
		return nil, tool.Errorf(tool.Unsupported, "server %q offers no subscriptions to its resources", p.opts.Name)
	}
	x := p.watch.hold(uri)
	if x == nil {
		return nil, tool.Errorf(tool.RateLimited, "server %q has %d subscriptions, the most there may be", p.opts.Name, maxWatched)
	}
	id := p.watch.listen(x, updated) // before the server is asked: it may have news at once
	cancel = sync.OnceFunc(func() {
		if told := p.watch.leave(x, id); told == nil || !told.line.goWork(func() { told.part(x) }) {
			p.watch.release(x)
		}
	})
	if err := s.agree(ctx, x); err != nil {
		cancel()
		return nil, tool.Errorf(tool.DownstreamFailed, "server %q did not take the subscription: %w", p.opts.Name, err)
	}
	return cancel, nil
}

// agree has the server know whether anybody listens to a resource.
func (s *session) agree(ctx context.Context, x *watched) error {
	select {
	case x.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.line.done():
		return s.line.err()
	}
	defer func() { <-x.turn }()
	for {
		switch wanted, told := s.p.watch.state(x); {
		case wanted && told != s:
			if err := s.sdk.Subscribe(ctx, &mcp.SubscribeParams{URI: x.uri}); err != nil {
				return err
			}
			s.p.watch.note(x, s)
		case !wanted && told == s:
			s.p.watch.note(x, nil) // also if the server does not take it: then it tells of what nobody hears
			if err := s.sdk.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: x.uri}); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// part ends the server's subscription to a resource that nobody listens to any more.
func (s *session) part(x *watched) {
	defer s.p.watch.release(x)
	ctx, cancel := context.WithTimeout(s.line.ctx, cancelTime)
	defer cancel()
	if err := s.agree(ctx, x); err != nil {
		s.p.log.Debug("the server did not end a subscription", "uri", x.uri, "error", err)
	}
}

// resubscribe asks a new session for what the last one was asked for.
func (s *session) resubscribe() {
	if s.has.Resources == nil || !s.has.Resources.Subscribe {
		return
	}
	for _, x := range s.p.watch.holdAll() {
		ctx, cancel := context.WithTimeout(s.line.ctx, s.p.opts.Timeout)
		err := s.agree(ctx, x)
		cancel()
		s.p.watch.release(x)
		if err != nil && s.line.ctx.Err() == nil { // else the next session asks
			s.p.log.Warn("a subscription was lost when the server started anew", "uri", x.uri, "error", err)
		}
	}
}

// resourceUpdated takes in notifications/resources/updated.
func (l *line) resourceUpdated(params json.RawMessage) {
	rawjson.Members(params, func(key string, value json.RawMessage) {
		if key == "uri" && l.updated != nil {
			uri, _ := rawjson.String(value)
			l.updated(uri)
		}
	})
}
