package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// fake is a provider that offers what a test says and runs nothing.
type fake struct {
	identity provider.Identity
	offer    atomic.Pointer[provider.Offer]
}

func newFake(source tool.Source, label string, names ...string) *fake {
	f := &fake{identity: provider.Identity{Name: label, Source: source}}
	if source == tool.SourceMCP {
		f.identity.Prefix = "mcp__" + label
	}
	f.publish(func(o *provider.Offer) {
		o.Status.State = provider.Ready
		o.Tools = f.tools(names...)
	})
	return f
}

func (f *fake) tools(names ...string) []tool.Definition {
	var list []tool.Definition
	for _, name := range names {
		full, coldness := name, tool.External
		switch f.identity.Source {
		case tool.SourceMCP:
			full = tool.FullName("mcp", f.identity.Name, name)
		case tool.SourceBuiltin:
			coldness = tool.Core
		}
		list = append(list, tool.Definition{
			Name: full, OwnName: name, Source: f.identity.Source, SourceName: f.identity.Name, Coldness: coldness,
			Description: "Does " + name + ".", InputSchema: json.RawMessage(`{"type":"object"}`),
		})
	}
	return list
}

func (f *fake) publish(change func(*provider.Offer)) {
	var next provider.Offer
	if last := f.offer.Load(); last != nil {
		next = *last
	}
	change(&next)
	f.offer.Store(&next)
}

func (f *fake) status(state provider.State, reason string) {
	f.publish(func(o *provider.Offer) { o.Status = provider.Status{State: state, Reason: reason} })
}

func (f *fake) Identity() provider.Identity { return f.identity }

func (f *fake) Offer() *provider.Offer { return f.offer.Load() }

func (f *fake) Invoke(context.Context, *provider.Request) (*tool.Result, error) {
	return nil, errors.New("the catalog never invokes")
}

func catalogOf(providers ...provider.Provider) *catalog.Catalog {
	c := catalog.New(nil)
	c.SetProviders(providers)
	return c
}

func names(entries []*catalog.Entry) []string {
	var list []string
	for _, e := range entries {
		list = append(list, e.Definition.Name)
	}
	return list
}

func encode(t *testing.T, err error) string {
	t.Helper()
	raw, jsonErr := json.Marshal(tool.AsError(err))
	if jsonErr != nil {
		t.Fatal(jsonErr)
	}
	return string(raw)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
