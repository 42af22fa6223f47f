package catalog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestOneNameIsOneTool(t *testing.T) {
	override := func(f *fake) *fake { f.identity.Override = true; return f }
	type want struct {
		has     []string // "name=provider"
		refused []string // "name: refused… (kept)"
	}
	for name, test := range map[string]struct {
		providers []provider.Provider
		want      want
	}{
		"two third parties are both refused": {
			[]provider.Provider{newFake(tool.SourcePlugin, "a", "x", "y"), newFake(tool.SourcePlugin, "b", "x")},
			want{[]string{"y=a"}, []string{"x: a b ()"}}},
		"the order of the providers makes no difference": {
			[]provider.Provider{newFake(tool.SourcePlugin, "b", "x"), newFake(tool.SourcePlugin, "a", "x", "y")},
			want{[]string{"y=a"}, []string{"x: b a ()"}}},
		"one provider that offers a name twice has it refused": {
			[]provider.Provider{newFake(tool.SourcePlugin, "a", "x", "x")},
			want{nil, []string{"x: a a ()"}}},
		"a built-in keeps its name": {
			[]provider.Provider{newFake(tool.SourcePlugin, "a", "x"), newFake(tool.SourceBuiltin, "files", "x")},
			want{[]string{"x=files"}, []string{"x: a (files)"}}},
		"override shadows a built-in": {
			[]provider.Provider{newFake(tool.SourceBuiltin, "files", "x"), override(newFake(tool.SourcePlugin, "a", "x"))},
			want{[]string{"x=a"}, nil}},
		"two that override are both refused": {
			[]provider.Provider{newFake(tool.SourceBuiltin, "files", "x"), override(newFake(tool.SourcePlugin, "a", "x")), override(newFake(tool.SourcePlugin, "b", "x"))},
			want{[]string{"x=files"}, []string{"x: a b (files)"}}},
		"one that overrides wins over the built-in, another does not": {
			[]provider.Provider{newFake(tool.SourceBuiltin, "files", "x"), override(newFake(tool.SourcePlugin, "a", "x")), newFake(tool.SourcePlugin, "b", "x")},
			want{[]string{"x=a"}, []string{"x: b (a)"}}},
		"override does not win over a third party": {
			[]provider.Provider{newFake(tool.SourcePlugin, "b", "x"), override(newFake(tool.SourcePlugin, "a", "x"))},
			want{nil, []string{"x: b a ()"}}},
		"a plugin's tool with an MCP tool's full name is no rival": {
			[]provider.Provider{newFake(tool.SourceMCP, "kb", "search"), newFake(tool.SourcePlugin, "p", "mcp__kb__search")},
			want{[]string{"mcp__kb__search=kb"}, nil}},
		"the bridge's names belong to nobody, a built-in included": {
			[]provider.Provider{newFake(tool.SourceBuiltin, "files", "tool_search", "tool_describe", "tool_call", "x")},
			want{[]string{"x=files"}, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			s := catalogOf(test.providers...).Snapshot()
			var got want
			for _, e := range s.Entries() {
				got.has = append(got.has, e.Definition.Name+"="+e.Identity().Name)
			}
			for _, x := range s.Collisions() {
				var refused []string
				for _, o := range x.Refused {
					refused = append(refused, o.Provider)
				}
				kept := ""
				if x.Kept != nil {
					kept = x.Kept.Provider
				}
				got.refused = append(got.refused, fmt.Sprintf("%s: %s (%s)", x.Name, strings.Join(refused, " "), kept))
			}
			if d := cmp.Diff(test.want, got, cmp.AllowUnexported(want{})); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// Whatever starts first, a name of a built-in is never anybody else's for a moment, and the catalog is the same in the end.
func TestTheOrderOfStartsMakesNoDifference(t *testing.T) {
	digests := map[string]bool{}
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 3, 0, 1}, {1, 3, 2, 0}, {3, 0, 2, 1}} {
		list := []*fake{
			newFake(tool.SourceBuiltin, "files", "files_read", "files_list"), newFake(tool.SourceBuiltin, "web", "web_get"),
			newFake(tool.SourcePlugin, "p", "files_read", "own"), newFake(tool.SourceMCP, "kb", "search"),
		}
		offers := make([]*provider.Offer, len(list))
		var providers []provider.Provider
		for i, f := range list {
			offers[i] = f.Offer()
			f.publish(func(o *provider.Offer) { o.Tools, o.Status.State = nil, provider.Starting })
			providers = append(providers, f)
		}
		c := catalogOf(providers...)
		for _, i := range order {
			list[i].offer.Store(offers[i])
			c.Refresh()
			if e, ok := c.Snapshot().Find("files_read"); ok && e.Identity().Name != "files" {
				t.Fatalf("started in the order %v, files_read is of %s", order, e.Identity().Name)
			}
			if i == 3 {
				if _, ok := c.Snapshot().Find("mcp__kb__search"); !ok {
					t.Error("a name that no built-in can have was kept back")
				}
			}
		}
		if _, ok := c.Snapshot().Find("own"); !ok {
			t.Error("own is missing")
		}
		digests[c.Snapshot().Digest] = true
	}
	if len(digests) != 1 {
		t.Errorf("%d different catalogs", len(digests))
	}
}

func TestABuiltInThatFailsKeepsNobodyWaiting(t *testing.T) {
	builtin, plugin := newFake(tool.SourceBuiltin, "files"), newFake(tool.SourcePlugin, "p", "x")
	builtin.publish(func(o *provider.Offer) { o.Tools, o.Status.State = nil, provider.Starting })
	c := catalogOf(builtin, plugin)
	if _, ok := c.Snapshot().Find("x"); ok {
		t.Error("x is there before the built-in was heard of")
	}
	for _, state := range []provider.State{provider.Backoff, provider.Starting, provider.Stopped} {
		builtin.status(state, "")
		c.Refresh()
		if _, ok := c.Snapshot().Find("x"); !ok {
			t.Errorf("x is kept back while the built-in is %s", state)
		}
	}
	late := newFake(tool.SourceBuiltin, "web")
	late.publish(func(o *provider.Offer) { o.Tools, o.Status.State = nil, provider.Starting })
	c.SetProviders([]provider.Provider{builtin, plugin, late})
	if _, ok := c.Snapshot().Find("x"); !ok {
		t.Error("what was there was taken away for a built-in that is new")
	}
}

func TestADisabledProviderTakesNoNameFromOthers(t *testing.T) {
	a, b := newFake(tool.SourcePlugin, "a", "x"), newFake(tool.SourcePlugin, "b", "x")
	a.status(provider.Disabled, "")
	s := catalogOf(a, b).Snapshot()
	if e, ok := s.Find("x"); !ok || e.Identity().Name != "b" {
		t.Errorf("x is %v", e)
	}
}

func TestCollisionsAreLoggedOnceWithBothOrigins(t *testing.T) {
	var log bytes.Buffer
	c := catalog.New(&catalog.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	a := newFake(tool.SourcePlugin, "alpha", "x")
	c.SetProviders([]provider.Provider{a, newFake(tool.SourceMCP, "beta")})
	b := newFake(tool.SourcePlugin, "gamma", "x")
	c.SetProviders([]provider.Provider{a, b})
	a.publish(func(o *provider.Offer) { o.Tools = a.tools("x", "y") })
	c.Refresh()
	if n := strings.Count(log.String(), "one name, several origins"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, &log)
	}
	for _, word := range []string{"alpha", "gamma", "prefix = true"} {
		if !strings.Contains(log.String(), word) {
			t.Errorf("the log does not name %s:\n%s", word, &log)
		}
	}
}

// Guards fault 47707: one unusable definition breaks every request.
func TestADefinitionThatNoClientAcceptsIsRefusedAlone(t *testing.T) {
	for name, change := range map[string]func(*tool.Definition){
		"no name":                     func(d *tool.Definition) { d.Name = "" },
		"a name with a slash":         func(d *tool.Definition) { d.Name = "a/b" },
		"a name that is too long":     func(d *tool.Definition) { d.Name = strings.Repeat("x", 65) },
		"no schema":                   func(d *tool.Definition) { d.InputSchema = nil },
		"a schema that is null":       func(d *tool.Definition) { d.InputSchema = json.RawMessage(`null`) },
		"a schema that is no JSON":    func(d *tool.Definition) { d.InputSchema = json.RawMessage(`{"type":`) },
		"a schema that is a list":     func(d *tool.Definition) { d.InputSchema = json.RawMessage(`[]`) },
		"a schema of another type":    func(d *tool.Definition) { d.InputSchema = json.RawMessage(`{"type":"string"}`) },
		"a function inside a schema":  func(d *tool.Definition) { d.InputSchema = json.RawMessage(`{"type":"function","function":{}}`) },
		"a function without its type": func(d *tool.Definition) { d.InputSchema = json.RawMessage(`{"function":{"name":"x"}}`) },
		"a connector's name":          func(d *tool.Definition) { d.Name = "connectors__gmail__SEND" },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(tool.SourcePlugin, "p", "good", "bad", "fine")
			f.publish(func(o *provider.Offer) {
				o.Tools = slices.Clone(o.Tools)
				change(&o.Tools[1])
			})
			s := catalogOf(f).Snapshot()
			if d := cmp.Diff([]string{"fine", "good"}, names(s.Entries())); d != "" {
				t.Errorf("tools (-want +got):\n%s", d)
			}
			if len(s.Rejects()) != 1 || s.Rejects()[0].Reason == "" || s.Rejects()[0].Origin.Provider != "p" {
				t.Errorf("rejects: %+v", s.Rejects())
			}
		})
	}
}

func TestASchemaMayAllowMoreThanObjectsOrSayNothing(t *testing.T) {
	f := newFake(tool.SourcePlugin, "p", "a", "b", "c")
	f.publish(func(o *provider.Offer) {
		o.Tools[0].InputSchema = json.RawMessage(` {} `)
		o.Tools[1].InputSchema = json.RawMessage(`{"type":["object","null"]}`)
		o.Tools[2].InputSchema = json.RawMessage(`{"properties":{"function":{"type":"string"}}}`)
	})
	if s := catalogOf(f).Snapshot(); len(s.Entries()) != 3 {
		t.Errorf("rejects: %+v", s.Rejects())
	}
}
