package catalog_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hermesd/hermesd/policy"
	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

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
		"web_put":         {tool.ProviderQuarantined, "its schema changed"},
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
	f.status(provider.Draining, "nobody has used it for 2s; the next call starts it")
	if s := e.State(); s != (catalog.Availability{Condition: catalog.Available}) || v.Sources()[0].Unavailable != "" {
		t.Errorf("while it stops to start anew: %+v", s)
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
	if _, err := v.Find("x"); tool.CodeOf(err) != tool.ProviderQuarantined || !strings.Contains(err.Error(), "crashed 5 times") {
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
	first, second := s.View(sets.Scope([]string{"mcp:a"}, nil)), s.View(sets.Scope([]string{"mcp:a"}, nil))
	if first != second {
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

func TestAnyToolIsFoundHoweverItsNameIsSpelt(t *testing.T) {
	v := catalogOf(newFake(tool.SourceMCP, "git-hub", "create_issue", "listIssues"), newFake(tool.SourcePlugin, "p", "web-get", "todo_list")).Snapshot().View(nil)
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(v.Entries()).Draw(t, "tool")
		given := strings.Map(func(r rune) rune {
			switch {
			case strings.ContainsRune("_-", r):
				return rapid.SampledFrom([]rune("_- ")).Draw(t, "separator")
			case rapid.Bool().Draw(t, "upper"):
				return unicode.ToUpper(r)
			}
			return unicode.ToLower(r)
		}, e.Definition.Name)
		if got, err := v.Find(given); err != nil || got != e {
			t.Fatalf("%q: %v", given, err)
		}
	})
}
