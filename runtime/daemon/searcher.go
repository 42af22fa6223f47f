package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/hermesd/hermesd/runtime/bridge"
	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/daemon/learning"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/hermesd/hermesd/search"
	"github.com/hermesd/hermesd/search/embed"
)

// searcher answers searches within a view. It joins the catalog's snapshots to the search engine's corpus, and to what is
// known besides words: how tools were used, and what they mean.
type searcher struct {
	engine   *search.Engine
	learning *learning.Recorder
	embedder *embed.Embedder             // nil where no endpoint is configured
	mask     func(string) string         // takes secrets out of what is sent to the endpoint
	synonyms map[string]*search.Synonyms // of agents that have some of their own
	scopes   atomic.Pointer[scopes]
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

// newSearcher makes what searches with d.engine.
func (d *Daemon) newSearcher() (*searcher, error) {
	s := &searcher{engine: d.engine, mask: d.secrets.Mask, synonyms: map[string]*search.Synonyms{}}
	for i := range d.cfg.Agents {
		agent := &d.cfg.Agents[i]
		if maps.EqualFunc(agent.ToolSearch.Synonyms, d.cfg.Tools.ToolSearch.Synonyms, slices.Equal) {
			continue
		}
		own, err := search.NewSynonyms(agent.ToolSearch.Synonyms)
		if err != nil {
			return nil, fmt.Errorf("%s: agent %q: tool_search: %w", agent.Pos, agent.Name, err)
		}
		s.synonyms[agent.Name] = own
	}
	writer, err := d.store.Writer(false) // a lesson is no loss if the power fails
	if err != nil {
		return nil, err
	}
	s.learning, err = learning.New(context.Background(), &learning.Options{
		Database: writer, Terms: d.engine.Terms, Agents: learners(d.cfg, d.agents), Logger: d.logger,
	})
	if err != nil {
		return nil, err
	}
	if block := d.cfg.Embeddings; block != nil {
		s.embedder, err = embed.New(&embed.Options{
			URL: block.URL, Model: block.Model, APIKey: block.APIKey, Timeout: block.Timeout,
			Dir: filepath.Join(d.dirs.cache, "search"), Logger: d.logger,
		})
	}
	return s, err
}

// learners are the agents whose searches learn from use.
func learners(cfg *config.Config, agents *agents) []string {
	var names []string
	for _, name := range agents.names {
		learn := cfg.Tools.ToolSearch.Learn
		for i := range cfg.Agents {
			if cfg.Agents[i].Name == name {
				learn = cfg.Agents[i].ToolSearch.Learn
			}
		}
		if learn {
			names = append(names, name)
		}
	}
	return names
}

// run does the work in the background until ctx ends.
func (s *searcher) run(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error { return s.learning.Run(ctx) })
	if s.embedder != nil {
		group.Go(func() error { return s.embedder.Run(ctx) })
	}
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
	if s.embedder == nil {
		return
	}
	texts := make([]embed.Text, len(entries))
	for i, e := range entries {
		texts[i] = embed.Text{Name: e.Definition.Name, Text: s.mask(meaning(e.Definition))}
	}
	s.embedder.Update(texts)
}

// meaning is the text of a tool whose embedding stands for it.
func meaning(d *tool.Definition) string {
	words := strings.NewReplacer("_", " ", "-", " ")
	return words.Replace(d.SourceName) + ": " + words.Replace(d.OwnName) + "\n" + d.Description
}

// Search implements bridge.Searcher.
func (s *searcher) Search(ctx context.Context, r *bridge.SearchRequest) ([]search.Group, error) {
	scope := s.scope(r.View)
	var near []embed.Nearness
	if s.embedder != nil {
		asked := make([]string, len(r.Queries))
		for i, text := range r.Queries {
			asked[i] = s.mask(text)
		}
		near = s.embedder.Near(ctx, asked)
	}
	groups := make([]search.Group, len(r.Queries))
	for i, text := range r.Queries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		q := search.Query{Text: text, Limit: r.Limit, Explain: r.Explain, Usage: s.learning.Usage(r.Agent, text), Synonyms: s.synonyms[r.Agent]}
		if r.Extra != nil {
			q.Extra = r.Extra[i]
		}
		if near != nil {
			q.Meaning = near[i]
		}
		groups[i] = scope.Search(q)
	}
	if !r.Explain {
		s.learning.Searched(r.Agent, r.Session, r.Queries, groups)
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
