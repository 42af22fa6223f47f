package mcpclient

import (
	"context"
	"encoding/json"
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
	next int
	of   map[string]map[int]func()
}

// add reports whether it is the first for the URI.
func (w *watchers) add(uri string, updated func()) (id int, first, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string]map[int]func(){}
	}
	first = len(w.of[uri]) == 0
	if first && len(w.of) >= maxWatched {
		return 0, false, false
	}
	if first {
		w.of[uri] = map[int]func(){}
	}
	w.next++
	w.of[uri][w.next] = updated
	return w.next, first, true
}

// drop reports whether nobody is left for the URI.
func (w *watchers) drop(uri string, id int) (last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.of[uri][id]; !ok {
		return false
	}
	delete(w.of[uri], id)
	if len(w.of[uri]) > 0 {
		return false
	}
	delete(w.of, uri)
	return true
}

func (w *watchers) tell(uri string) {
	w.mu.Lock()
	list := make([]func(), 0, len(w.of[uri]))
	for _, f := range w.of[uri] {
		list = append(list, f)
	}
	w.mu.Unlock()
	for _, f := range list {
		f()
	}
}

func (w *watchers) uris() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]string, 0, len(w.of))
	for uri := range w.of {
		list = append(list, uri)
	}
	return list
}

// Subscribe implements [provider.Library]. uri is the server's own.
func (p *Provider) Subscribe(ctx context.Context, uri string, updated func()) (cancel func(), err error) {
	s, release, err := p.supervisor.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if s.has.Resources == nil || !s.has.Resources.Subscribe {
		return nil, tool.Errorf(tool.Unsupported, "server %q offers no subscriptions to its resources", p.opts.Name)
	}
	id, first, ok := p.watch.add(uri, updated)
	if !ok {
		return nil, tool.Errorf(tool.RateLimited, "server %q has %d subscriptions, the most there may be", p.opts.Name, maxWatched)
	}
	if first {
		if err := s.sdk.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
			p.watch.drop(uri, id)
			return nil, tool.Errorf(tool.DownstreamFailed, "server %q did not take the subscription: %w", p.opts.Name, err)
		}
	}
	return sync.OnceFunc(func() {
		if p.watch.drop(uri, id) {
			p.unsubscribe(s, uri)
		}
	}), nil
}

// unsubscribe tells the server, if it is still the same, that nobody listens. Nobody waits for its answer.
func (p *Provider) unsubscribe(s *session, uri string) {
	s.line.goWork(func() {
		ctx, cancel := context.WithTimeout(s.line.ctx, cancelTime)
		defer cancel()
		if err := s.sdk.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}); err != nil {
			p.log.Debug("the server did not end a subscription", "uri", uri, "error", err)
		}
	})
}

// resubscribe asks a new session for what the last one was asked for.
func (s *session) resubscribe(ctx context.Context, uris []string) {
	if s.has.Resources == nil || !s.has.Resources.Subscribe {
		return
	}
	for _, uri := range uris {
		if err := s.sdk.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
			if s.line.ctx.Err() != nil {
				return // this session has ended, and the next one asks
			}
			s.p.log.Warn("a subscription was lost when the server started anew", "uri", uri, "error", err)
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
