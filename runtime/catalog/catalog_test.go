package catalog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/policy"
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
func (f *fake) Offer() *provider.Offer      { return f.offer.Load() }
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
		"an MCP tool and a plugin's with one full name": {
			[]provider.Provider{newFake(tool.SourceMCP, "kb", "search"), newFake(tool.SourcePlugin, "p", "mcp__kb__search")},
			want{nil, []string{"mcp__kb__search: kb p ()"}}},
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

func TestOnlyAChangeOfToolsBeginsAGeneration(t *testing.T) {
	f, g := newFake(tool.SourcePlugin, "p", "x", "y"), newFake(tool.SourceMCP, "m", "z")
	var told []uint64
	c := catalog.New(&catalog.Options{OnChange: func(s *catalog.Snapshot) { told = append(told, s.Generation) }})
	c.SetProviders([]provider.Provider{f, g})
	for name, step := range map[string]struct {
		change func()
		begins bool
	}{
		"nothing":                       {func() {}, false},
		"it goes down":                  {func() { f.status(provider.Backoff, "exit status 1") }, false},
		"it starts":                     {func() { f.status(provider.Starting, "") }, false},
		"it stops":                      {func() { f.status(provider.Stopped, "") }, false},
		"it lists the same tools again": {func() { f.publish(func(o *provider.Offer) { o.Tools = f.tools("x", "y") }) }, false},
		"a tool comes":                  {func() { f.publish(func(o *provider.Offer) { o.Tools = f.tools("x", "y", "w") }) }, true},
		"a tool goes":                   {func() { f.publish(func(o *provider.Offer) { o.Tools = f.tools("x") }) }, true},
		"a precondition fails":          {func() { f.publish(func(o *provider.Offer) { o.Unmet = map[string]string{"x": "set X"} }) }, true},
		"a tool is quarantined":         {func() { f.publish(func(o *provider.Offer) { o.Refused = map[string]string{"x": "changed"} }) }, true},
		"the operator switches it off":  {func() { f.status(provider.Disabled, "") }, true},
		"it is quarantined after too many failures": {func() { f.status(provider.Quarantined, "") }, true},
		"a description changes": {func() {
			f.publish(func(o *provider.Offer) { o.Tools = f.tools("x", "y"); o.Tools[0].Description = "Else." })
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f.publish(func(o *provider.Offer) { *o = provider.Offer{Tools: f.tools("x", "y")} })
			c.Refresh()
			told = nil
			before := c.Snapshot()
			step.change()
			c.Refresh()
			after := c.Snapshot()
			if begins := after.Generation != before.Generation; begins != step.begins || len(told) != int(after.Generation-before.Generation) {
				t.Errorf("generation %d -> %d, told %v", before.Generation, after.Generation, told)
			}
		})
	}
}

func TestADigestIsOfTheToolsAlone(t *testing.T) {
	digest := func(change func(*fake)) string {
		f := newFake(tool.SourcePlugin, "p", "x", "y")
		change(f)
		return catalogOf(f, newFake(tool.SourceMCP, "m", "z")).Snapshot().Digest
	}
	same := digest(func(*fake) {})
	if digest(func(f *fake) { f.status(provider.Stopped, "") }) != same {
		t.Error("a status changed the digest")
	}
	for name, change := range map[string]func(*tool.Definition){
		"description": func(d *tool.Definition) { d.Description = "Else." },
		"schema":      func(d *tool.Definition) { d.InputSchema = json.RawMessage(`{"type":"object","required":["a"]}`) },
		"keywords":    func(d *tool.Definition) { d.Keywords = []string{"a"} },
		"annotation":  func(d *tool.Definition) { d.Annotations.ReadOnly = new(true) },
		"not this":    func(d *tool.Definition) { d.Annotations.ReadOnly = new(false) },
	} {
		if digest(func(f *fake) { change(&f.offer.Load().Tools[0]) }) == same {
			t.Errorf("%s did not change the digest", name)
		}
	}
}

func TestAView(t *testing.T) {
	files, kb, web := newFake(tool.SourceBuiltin, "files", "files_read", "files_write"), newFake(tool.SourceMCP, "kb", "search", "add"), newFake(tool.SourcePlugin, "web", "web_get", "web_post", "web_put")
	web.publish(func(o *provider.Offer) {
		o.Unmet = map[string]string{"web_post": "WEB_KEY is not set; add it to pass_env"}
		o.Refused = map[string]string{"web_put": "its schema changed"}
	})
	sets, err := policy.NewToolsets(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := catalogOf(files, kb, web).Snapshot().View(sets.Scope([]string{"core", "plugin:web"}, []string{"files_write"}))
	if d := cmp.Diff([]string{"files_read", "web_get"}, names(v.Entries())); d != "" {
		t.Errorf("ranked (-want +got):\n%s", d)
	}
	for given, want := range map[string]struct {
		code    tool.Code
		message string
	}{
		"files_read":      {"", "files_read"},
		"Files-Read":      {"", "files_read"},
		" files read ":    {"", "files_read"},
		"files_write":     {tool.NotAvailable, "excludes files_write"},
		"FILES WRITE":     {tool.NotAvailable, "do not retry"},
		"web_post":        {tool.NotAvailable, "WEB_KEY is not set"},
		"web_put":         {tool.NotAvailable, "its schema changed"},
		"mcp__kb__search": {tool.UnknownTool, `no tool named "mcp__kb__search"`},
		"search":          {tool.UnknownTool, `no tool named "search"`},
		"webget":          {tool.UnknownTool, "did you mean web_get?"},
		"webpost":         {tool.UnknownTool, "no tool named"},
		"file:///x":       {tool.UnknownTool, "search for what you need"},
		"":                {tool.UnknownTool, "no tool named"},
	} {
		e, err := v.Find(given)
		if want.code == "" {
			if err != nil || e.Definition.Name != want.message {
				t.Errorf("%q: %v, %v", given, e, err)
			}
			continue
		}
		if tool.CodeOf(err) != want.code || !strings.Contains(err.Error(), want.message) {
			t.Errorf("%q: %s: %v", given, tool.CodeOf(err), err)
		}
	}
}

// Guards faults 34493 and toolhive 4374: what was not granted must not be told from what does not exist.
func TestANameThatWasNeverGrantedIsLikeAnUnknownOne(t *testing.T) {
	kb, secret := newFake(tool.SourceMCP, "kb", "search"), newFake(tool.SourceMCP, "secret", "search", "launch")
	sets, err := policy.NewToolsets(nil)
	if err != nil {
		t.Fatal(err)
	}
	scope := sets.Scope([]string{"mcp:kb"}, nil)
	with := catalogOf(kb, secret).Snapshot().View(scope)
	without := catalogOf(kb).Snapshot().View(scope)
	for _, given := range []string{"mcp__secret__search", "mcp__secret__launch", "launch", "mcp_secret_launch", "mcp__secret__lanch", "secret", "search", "mcp__k__search"} {
		_, a := with.Find(given)
		_, b := without.Find(given)
		if d := cmp.Diff(encode(t, b), encode(t, a)); d != "" {
			t.Errorf("%q tells of what was not granted:\n%s", given, d)
		}
	}
	if d := cmp.Diff(without.Sources(), with.Sources()); d != "" {
		t.Error(d)
	}
}

func encode(t *testing.T, err error) string {
	t.Helper()
	raw, jsonErr := json.Marshal(tool.AsError(err))
	if jsonErr != nil {
		t.Fatal(jsonErr)
	}
	return string(raw)
}

func TestFindUnderstandsHowModelsSpellNames(t *testing.T) {
	v := catalogOf(
		newFake(tool.SourceMCP, "github", "create_issue", "search"), newFake(tool.SourceMCP, "kb", "search"),
		newFake(tool.SourceMCP, "a_b", "c"), newFake(tool.SourceMCP, "a", "b_c"),
		newFake(tool.SourcePlugin, "p", "get-it", "get_it", "Shout"),
	).Snapshot().View(nil)
	for given, want := range map[string]string{
		"mcp__github__create_issue": "mcp__github__create_issue",
		"MCP__GitHub__Create-Issue": "mcp__github__create_issue",
		"mcp_github_create_issue":   "mcp__github__create_issue",
		"mcp-github-create-issue":   "mcp__github__create_issue",
		"mcp_a_b_c":                 "", // two tools
		"get-it":                    "get-it",
		"get_it":                    "get_it",
		"get it":                    "", // two tools
		"shout":                     "Shout",
		"create_issue":              "",
	} {
		e, err := v.Find(given)
		switch {
		case want == "" && tool.CodeOf(err) != tool.UnknownTool:
			t.Errorf("%q: %v, %v", given, e, err)
		case want != "" && (err != nil || e.Definition.Name != want):
			t.Errorf("%q: %v, %v", given, e, err)
		}
	}
	// Guards fault 114775: a bare suffix.
	for given, want := range map[string][]string{
		"search":                   {"mcp__github__search", "mcp__kb__search"},
		"create_issue":             {"mcp__github__create_issue"},
		"create_isue":              {"mcp__github__create_issue"},
		"mcp__github__create_isue": {"mcp__github__create_issue"},
		"github_create_issue":      {"mcp__github__create_issue"},
		strings.Repeat("x", 5000):  nil,
	} {
		_, err := v.Find(given)
		got, _ := tool.AsError(err).Extra["did_you_mean"].([]string)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%.40q (-want +got):\n%s", given, d)
		}
	}
}

func TestAToolOfAProviderThatIsDownStaysRankedAndSaysWhy(t *testing.T) {
	f := newFake(tool.SourceMCP, "kb", "search")
	c := catalogOf(f)
	v := c.Snapshot().View(nil)
	f.status(provider.Backoff, "connection refused")
	e, err := v.Find("mcp__kb__search")
	if err != nil {
		t.Fatal(err)
	}
	want := catalog.Availability{Condition: catalog.Unavailable, Reason: "its provider is down and will be started again by itself: connection refused"}
	if d := cmp.Diff(want, e.State()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]catalog.Source{{Name: "kb", Kind: tool.SourceMCP, Tools: 1, Unavailable: want.Reason}}, v.Sources()); d != "" {
		t.Error(d)
	}
	f.status(provider.Ready, "")
	if s := e.State(); s.Condition != catalog.Available {
		t.Errorf("after it came back: %+v", s)
	}
}

func TestAQuarantinedProviderIsNeitherRankedNorCalledButItsLinesStay(t *testing.T) {
	f := newFake(tool.SourcePlugin, "p", "x")
	c := catalogOf(f)
	f.status(provider.Quarantined, "crashed 5 times in 10 minutes")
	c.Refresh()
	v := c.Snapshot().View(nil)
	if len(v.Entries()) != 0 || len(v.Listed()) != 1 {
		t.Errorf("ranked %v, listed %v", names(v.Entries()), names(v.Listed()))
	}
	if _, err := v.Find("x"); tool.CodeOf(err) != tool.NotAvailable || !strings.Contains(err.Error(), "crashed 5 times") {
		t.Error(err)
	}
}

// Guards fault 61184: no fall-back from a tool of a disabled server to another's.
func TestADisabledProviderIsAHardBoundary(t *testing.T) {
	a, b := newFake(tool.SourceMCP, "a", "search"), newFake(tool.SourceMCP, "b", "search")
	b.status(provider.Disabled, "")
	a.status(provider.Stopped, "")
	v := catalogOf(a, b).Snapshot().View(nil)
	if d := cmp.Diff([]string{"mcp__a__search"}, names(v.Listed())); d != "" {
		t.Error(d)
	}
	for _, given := range []string{"mcp__b__search", "mcp_b_search", "MCP__B__SEARCH"} {
		if _, err := v.Find(given); tool.CodeOf(err) != tool.NotAvailable {
			t.Errorf("%s: %v", given, err)
		}
	}
	if e, err := v.Find("mcp__a__search"); err != nil || e.Identity().Name != "a" {
		t.Errorf("%v, %v", e, err)
	}
}

// Guards faults 50170 and 19179: a server that never started is told of.
func TestASourceThatNeverStartedIsListedWithItsReason(t *testing.T) {
	dead, starting := newFake(tool.SourceMCP, "dead"), newFake(tool.SourceMCP, "late")
	dead.status(provider.Backoff, "no such file: kb-server")
	starting.status(provider.Starting, "")
	sets, err := policy.NewToolsets(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := catalogOf(dead, starting, newFake(tool.SourceMCP, "up", "x"), newFake(tool.SourceMCP, "empty")).Snapshot()
	want := []catalog.Source{
		{Name: "dead", Kind: tool.SourceMCP, Unavailable: "its provider is down and will be started again by itself: no such file: kb-server"},
		{Name: "late", Kind: tool.SourceMCP, Unavailable: "it is starting"},
		{Name: "up", Kind: tool.SourceMCP, Tools: 1},
	}
	if d := cmp.Diff(want, s.View(sets.Scope([]string{"mcp:*"}, nil)).Sources()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(want[2:], s.View(sets.Scope([]string{"mcp:up"}, nil)).Sources()); d != "" {
		t.Errorf("not granted (-want +got):\n%s", d)
	}
}

func TestViewsAreSharedByEqualScopes(t *testing.T) {
	sets, err := policy.NewToolsets(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := catalogOf(newFake(tool.SourceMCP, "a", "x"), newFake(tool.SourceMCP, "b", "x")).Snapshot()
	if s.View(sets.Scope([]string{"mcp:a"}, nil)) != s.View(sets.Scope([]string{"mcp:a"}, nil)) {
		t.Error("two views for one scope")
	}
	v := s.View(nil)
	only := v.Only(func(e *catalog.Entry) bool { return e.Identity().Name == "a" })
	if only.Key() == v.Key() || len(only.Entries()) != 1 {
		t.Errorf("a part of a view: %s of %s", only.Key(), v.Key())
	}
	if all := v.Only(func(*catalog.Entry) bool { return true }); all != v {
		t.Error("the whole of a view is another view")
	}
}

func TestReadersAreNeverHeldUp(t *testing.T) {
	f := newFake(tool.SourcePlugin, "p", "x", "y")
	c := catalogOf(f)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := c.Snapshot()
				v := s.View(nil)
				for _, e := range v.Entries() {
					if got, err := v.Find(strings.ToUpper(e.Definition.Name)); err != nil || got != e {
						t.Errorf("generation %d: %v, %v", s.Generation, got, err)
						return
					}
				}
			}
		})
	}
	for i := range 200 {
		f.publish(func(o *provider.Offer) { o.Tools = f.tools("x", fmt.Sprintf("y%d", i)) })
		c.Refresh()
	}
	close(stop)
	readers.Wait()
	if g := c.Snapshot().Generation; g != 201 {
		t.Errorf("generation %d after 200 changes", g)
	}
}

func TestAHundredThousandToolsFit(t *testing.T) {
	f, small := giant(100_000), newFake(tool.SourcePlugin, "p", "x")
	c := catalogOf()
	before := heap()
	c.SetProviders([]provider.Provider{f, small})
	v := c.Snapshot().View(nil)
	if len(v.Entries()) != 100_001 {
		t.Fatalf("%d tools", len(v.Entries()))
	}
	if each := (heap() - before) / 100_001; each > 400 {
		t.Errorf("a tool takes %d bytes beside its definition", each)
	}
	if _, err := v.Find("mcp__giant__tool_100000"); tool.CodeOf(err) != tool.UnknownTool || len(tool.AsError(err).Extra) == 0 {
		t.Error(err)
	}
	n := testing.AllocsPerRun(10, func() {
		small.status(provider.Backoff, "down")
		c.Refresh()
	})
	if n > 20 {
		t.Errorf("a change of status allocates %v times", n)
	}
	runtime.KeepAlive(f)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
