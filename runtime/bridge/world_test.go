package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hermesd/hermesd/policy"
	"github.com/hermesd/hermesd/runtime/bridge"
	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/hermesd/hermesd/search"
)

// world is a bridge over the real catalog and pipeline, with providers that behave as their tools' names say.
type world struct {
	catalog *catalog.Catalog
	bridge  *bridge.Bridge
	down    *fake

	mu  sync.Mutex
	ran []string // "name arguments via" of every call that reached a provider
}

type fake struct {
	world    *world
	identity provider.Identity
	offer    atomic.Pointer[provider.Offer]
	answer   map[string]func(args json.RawMessage) (*tool.Result, error) // by own name; absent: echoes
}

func (f *fake) Identity() provider.Identity { return f.identity }
func (f *fake) Offer() *provider.Offer      { return f.offer.Load() }

func (f *fake) Invoke(_ context.Context, req *provider.Request) (*tool.Result, error) {
	if s := f.Offer().Status; s.State == provider.Backoff {
		return nil, tool.Errorf(tool.ProviderStarting, "%s waits before it is started again: %s", f.identity.Name, s.Reason)
	}
	f.world.mu.Lock()
	f.world.ran = append(f.world.ran, fmt.Sprintf("%s %s %s", req.Definition.Name, req.Call.Arguments, req.Call.Via))
	f.world.mu.Unlock()
	if answer := f.answer[req.Definition.OwnName]; answer != nil {
		return answer(req.Call.Arguments)
	}
	return tool.TextResult(fmt.Sprintf("%s got %s", req.Definition.OwnName, req.Call.Arguments)), nil
}

func (w *world) provider(source tool.Source, label string, tools ...tool.Definition) *fake {
	f := &fake{world: w, identity: provider.Identity{Name: label, Source: source}}
	for i := range tools {
		d := &tools[i]
		d.OwnName, d.Source, d.SourceName = d.Name, source, label
		if d.Coldness == "" {
			d.Coldness = tool.External
		}
		if source == tool.SourceMCP {
			d.Name = tool.FullName("mcp", label, d.OwnName)
		}
		if source == tool.SourceConnectors {
			d.Name = tool.FullName("connectors", label, d.OwnName)
		}
		if d.InputSchema == nil {
			d.InputSchema = json.RawMessage(`{"type":"object"}`)
		}
	}
	f.offer.Store(&provider.Offer{Tools: tools, Status: provider.Status{State: provider.Ready}})
	return f
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{}
	files := w.provider(tool.SourceBuiltin, "files",
		tool.Definition{Name: "files_read", Description: "Reads a file.", Coldness: tool.Core, InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
		tool.Definition{Name: "terminal", Description: "Runs a command.", Coldness: tool.Core},
	)
	kb := w.provider(tool.SourceMCP, "kb",
		tool.Definition{Name: "search", Description: "Searches the knowledge base, e.g. for <b>pages</b> & notes. Gives ten.", InputSchema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`), Annotations: tool.Annotations{ParallelSafe: new(true)}},
		tool.Definition{Name: "refresh", Description: "Reads everything again."},
	)
	tracker := w.provider(tool.SourceMCP, "tracker",
		tool.Definition{Name: "create_issue", Description: "Creates an issue.", InputSchema: json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"},"priority":{"enum":["low","high"]},"labels":{"type":"array","items":{"type":"string"}}},"required":["title"],"additionalProperties":false}`)},
		tool.Definition{Name: "fail", Description: "Fails at its own task."},
		tool.Definition{Name: "break", Description: "Never answers."},
		tool.Definition{Name: "chart", Description: "Draws a chart."},
		tool.Definition{Name: "stats", Description: "Counts issues."},
	)
	tracker.answer = map[string]func(json.RawMessage) (*tool.Result, error){
		"fail": func(json.RawMessage) (*tool.Result, error) {
			r := tool.TextResult("no such project")
			r.IsError = true
			return r, nil
		},
		"break": func(json.RawMessage) (*tool.Result, error) {
			return nil, tool.Errorf(tool.DownstreamFailed, "the tracker's database is locked")
		},
		"chart": func(json.RawMessage) (*tool.Result, error) {
			return &tool.Result{Content: []tool.Content{tool.Text("here it is"), tool.Image("image/png", []byte("png"))}}, nil
		},
		"stats": func(json.RawMessage) (*tool.Result, error) {
			return &tool.Result{Content: []tool.Content{tool.Text(`{"open":3}`)}, Structured: json.RawMessage(`{"open":3}`)}, nil
		},
	}
	web := w.provider(tool.SourcePlugin, "web",
		tool.Definition{Name: "web_get", Description: "Gets a page."},
		tool.Definition{Name: "web_post", Description: "Posts a form."},
	)
	next := *web.offer.Load()
	next.Unmet = map[string]string{"web_post": "WEB_KEY is not set; ask the operator to add it to pass_env"}
	web.offer.Store(&next)
	w.down = w.provider(tool.SourceMCP, "mail", tool.Definition{Name: "send", Description: "Sends a mail."})
	w.down.offer.Store(&provider.Offer{Tools: w.down.Offer().Tools, Status: provider.Status{State: provider.Backoff, Reason: "connection refused"}})
	gmail := w.provider(tool.SourceConnectors, "gmail", tool.Definition{Name: "SEND_DRAFT", Description: "Sends a draft."})
	secret := w.provider(tool.SourceMCP, "secret", tool.Definition{Name: "launch", Description: "Launches."})

	w.catalog = catalog.New(nil)
	w.catalog.SetProviders([]provider.Provider{files, kb, tracker, web, w.down, gmail, secret})
	p, err := pipeline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.bridge = bridge.New(&bridge.Options{Pipeline: p, Search: words{}})
	return w
}

// settings are what a conversation may say about its caller.
type settings struct {
	DirectCall string              `json:"direct_call"`
	Exclude    []string            `json:"exclude"`
	Names      catalog.BridgeNames `json:"names"`
	MaxLimit   int                 `json:"max_limit"`
}

// caller may use everything but the server named secret; the built-ins stand in its own list.
func (w *world) caller(t testing.TB, s settings) *bridge.Caller {
	t.Helper()
	sets, err := policy.NewToolsets(nil)
	if err != nil {
		t.Fatal(err)
	}
	view := w.catalog.Snapshot().View(sets.Scope([]string{"core", "mcp:kb", "mcp:tracker", "mcp:mail", "plugin:web", "connectors:gmail"}, s.Exclude))
	return &bridge.Caller{
		Agent: "desk", Session: "desk/1", View: view, Searchable: view.Only(func(e *catalog.Entry) bool { return external{}.Deferred(e.Definition.Name) }),
		Shown: external{}, DirectCall: s.DirectCall, Names: s.Names, MaxLimit: s.MaxLimit,
	}
}

// external defers everything but the built-ins.
type external struct{}

func (external) Deferred(name tool.Name) bool { return name != "files_read" && name != "terminal" }

// words is a searcher whose answers do not change when ranking does: a tool matches if its name or description holds a
// word of the query; a query with "maybe" is answered weakly.
type words struct{}

func (words) Search(_ context.Context, r *bridge.SearchRequest) ([]search.Group, error) {
	groups := make([]search.Group, len(r.Queries))
	for i, q := range r.Queries {
		groups[i].Weak = strings.Contains(q, "maybe")
		for _, e := range r.View.Entries() {
			for _, word := range strings.Fields(q) {
				if strings.Contains(strings.ToLower(e.Definition.Name+" "+e.Definition.Description), word) && len(groups[i].Hits) < r.Limit {
					groups[i].Hits = append(groups[i].Hits, search.Hit{Name: e.Definition.Name})
					break
				}
			}
		}
	}
	return groups, nil
}
