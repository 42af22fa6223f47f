package daemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/search"
)

// searcher answers searches within a view. It joins the catalog's snapshots to the search engine's corpus.
type searcher struct {
	engine *search.Engine
	scopes atomic.Pointer[scopes]
}

// scopes holds what has been worked out for one corpus: one scope for each view.
type scopes struct {
	corpus *search.Corpus
	byView sync.Map // view key -> *search.Scope
}

// newEngine makes the search engine of a configuration.
func newEngine(cfg *config.Config, cache string, logger *slog.Logger) (*search.Engine, error) {
	return search.New(&search.Options{
		Dir: filepath.Join(cache, "search"), Synonyms: cfg.Tools.ToolSearch.Synonyms, Logger: logger,
	})
}

// update gives the engine the tools of a new snapshot.
func (s *searcher) update(snapshot *catalog.Snapshot) {
	entries := snapshot.Entries()
	docs := make([]search.Document, len(entries))
	for i, e := range entries {
		d := e.Definition
		docs[i] = search.Document{
			Name: d.Name, OwnName: d.OwnName, Source: d.SourceName,
			Description: d.Description, Parameters: d.InputSchema, Keywords: d.Keywords,
		}
	}
	s.engine.Update(docs)
}

// Search implements bridge.Searcher.
func (s *searcher) Search(ctx context.Context, view *catalog.View, queries []string, limit int) ([]search.Group, error) {
	return s.search(ctx, view, queries, limit, false)
}

func (s *searcher) search(ctx context.Context, view *catalog.View, queries []string, limit int, explain bool) ([]search.Group, error) {
	scope := s.scope(view)
	groups := make([]search.Group, len(queries))
	for i, text := range queries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		groups[i] = scope.Search(search.Query{Text: text, Limit: limit, Explain: explain})
	}
	return groups, nil
}

// scope returns what a view lets through of the current corpus. Two callers may work it out at the same time; both get
// the same answer.
func (s *searcher) scope(view *catalog.View) *search.Scope {
	corpus := s.engine.Corpus()
	all := s.scopes.Load()
	if all == nil || all.corpus != corpus {
		all = &scopes{corpus: corpus}
		s.scopes.Store(all)
	}
	if found, ok := all.byView.Load(view.Key()); ok {
		return found.(*search.Scope)
	}
	made := corpus.Scope(included(view))
	all.byView.Store(view.Key(), made)
	return made
}

// included is the view as the search engine wants it: nil where it hides nothing.
func included(view *catalog.View) func(name string) bool {
	entries := view.Entries()
	if len(entries) == len(view.Snapshot().Entries()) {
		return nil
	}
	names := make(map[string]struct{}, len(entries))
	for _, e := range entries {
		names[e.Definition.Name] = struct{}{}
	}
	return func(name string) bool {
		_, ok := names[name]
		return ok
	}
}
