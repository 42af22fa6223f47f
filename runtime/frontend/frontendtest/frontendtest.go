// Package frontendtest is what the tests of front ends stand on: a desk with everything real behind it, over providers
// that the test makes.
package frontendtest

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/hermesd/hermesd/policy"
	"github.com/hermesd/hermesd/runtime/bridge"
	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/hermesd/hermesd/search"
)

// Token is the bearer token of the agent "desk"; "other" has OtherToken.
const (
	Token      = "desk-token"
	OtherToken = "other-token"
)

// World is a desk and what stands behind it.
type World struct {
	Desk    *frontend.Desk
	Catalog *catalog.Catalog
	Agents  *Agents
}

// New makes a world of providers, with a pipeline that refuses nothing. The agents "desk", "other" and "local" may use everything; external tools are deferred.
func New(t testing.TB, providers ...provider.Provider) *World {
	t.Helper()
	return NewBehind(t, nil, providers...)
}

// NewBehind is New with a pipeline of the given options.
func NewBehind(t testing.TB, opts *pipeline.Options, providers ...provider.Provider) *World {
	t.Helper()
	pipe, err := pipeline.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	w := &World{Catalog: catalog.New(nil), Agents: newAgents(t)}
	w.Catalog.SetProviders(providers)
	w.Desk = &frontend.Desk{
		Agents:     w.Agents,
		Disclosure: disclosure.New(w.Catalog),
		Bridge:     bridge.New(&bridge.Options{Pipeline: pipe, Search: newSearcher(t)}),
		Pipeline:   pipe,
	}
	return w
}

// Agent returns one of the world's agents.
func (w *World) Agent(name string) *disclosure.Agent {
	agent, _ := w.Agents.ByName(name)
	return agent
}

// Agents implements [frontend.Agents].
type Agents struct {
	mu     sync.Mutex
	byName map[string]*disclosure.Agent
	tokens map[string]string
}

func newAgents(t testing.TB) *Agents {
	t.Helper()
	toolsets, err := policy.NewToolsets(nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &Agents{byName: map[string]*disclosure.Agent{}, tokens: map[string]string{Token: "desk", OtherToken: "other"}}
	for _, name := range []string{"desk", "other", "local"} {
		a.byName[name] = &disclosure.Agent{
			Name: name, Attended: true, Scope: toolsets.Scope(nil, nil), Settings: disclosure.Settings{Enabled: disclosure.On},
		}
	}
	return a
}

// Remove makes an agent unknown, as a reload of the configuration does.
func (a *Agents) Remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byName, name)
}

// Restrict gives an agent other toolsets and exclusions, as a reload of the configuration does.
func (a *Agents) Restrict(t testing.TB, name string, granted, exclude []string) {
	t.Helper()
	toolsets, err := policy.NewToolsets(nil)
	if err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	changed := *a.byName[name]
	changed.Scope = toolsets.Scope(granted, exclude)
	a.byName[name] = &changed
}

// ByToken implements [frontend.Agents].
func (a *Agents) ByToken(token string) (*disclosure.Agent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if agent, ok := a.byName[a.tokens[token]]; ok {
		return agent, nil
	}
	return nil, tool.Errorf(tool.Unauthenticated, "no agent has this token")
}

// Local implements [frontend.Agents].
func (a *Agents) Local(peerUID int, known bool) (*disclosure.Agent, error) {
	if !known || peerUID != os.Getuid() {
		return nil, tool.Errorf(tool.Unauthenticated, "a token is needed")
	}
	agent, _ := a.ByName("local")
	return agent, nil
}

// ByName implements [frontend.Agents].
func (a *Agents) ByName(name string) (*disclosure.Agent, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	agent, ok := a.byName[name]
	return agent, ok
}

// searcher gives the search engine the whole view at every search.
type searcher struct{ engine *search.Engine }

func newSearcher(t testing.TB) *searcher {
	t.Helper()
	engine, err := search.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return &searcher{engine}
}

// Search implements [bridge.Searcher].
func (s *searcher) Search(_ context.Context, r *bridge.SearchRequest) ([]search.Group, error) {
	docs := make([]search.Document, 0, len(r.View.Entries()))
	for _, e := range r.View.Entries() {
		d := e.Definition
		docs = append(docs, search.Document{Name: d.Name, OwnName: d.OwnName, Source: d.SourceName, Description: d.Description})
	}
	s.engine.Update(docs)
	groups := make([]search.Group, len(r.Queries))
	for i, q := range r.Queries {
		groups[i] = s.engine.Corpus().Scope(nil).Search(search.Query{Text: q, Limit: r.Limit, Explain: r.Explain})
	}
	return groups, nil
}
