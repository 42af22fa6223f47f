package policy_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hermesd/hermesd/policy"
	"github.com/hermesd/hermesd/runtime/tool"
)

func builtin(name, toolset string, coldness tool.Coldness) *tool.Definition {
	return &tool.Definition{Name: name, OwnName: name, Toolset: toolset, Source: tool.SourceBuiltin, SourceName: toolset, Coldness: coldness}
}

func mcp(server, name string) *tool.Definition {
	return &tool.Definition{Name: tool.FullName("mcp", server, name), OwnName: name, Source: tool.SourceMCP, SourceName: server, Coldness: tool.External}
}

func plugin(label, name string) *tool.Definition {
	return &tool.Definition{Name: name, OwnName: name, Source: tool.SourcePlugin, SourceName: label, Coldness: tool.External}
}

func TestScope(t *testing.T) {
	tools := []*tool.Definition{
		builtin("files_read", "files", tool.Core), builtin("web_fetch", "web", tool.Cold), builtin("browser_open", "browser", tool.Cold),
		builtin("terminal", "terminal", tool.Core), mcp("github", "create_issue"), mcp("arxiv", "search"), plugin("weather", "weather"),
	}
	blocks := map[string][]string{
		"research": {"web", "files", "mcp:arxiv"},
		"outer":    {"research", "plugin:weather"},
		"a":        {"b", "web"},
		"b":        {"a", "browser"},
		"browser":  {"browser", "web"}, // itself: the provider's toolset of that name
	}
	for name, test := range map[string]struct {
		granted, exclude []string
		want             []string
	}{
		"no toolsets grant everything":                       {nil, nil, []string{"files_read", "web_fetch", "browser_open", "terminal", "mcp__github__create_issue", "mcp__arxiv__search", "weather"}},
		"an empty list grants nothing":                       {[]string{}, nil, nil},
		"* is everything":                                    {[]string{"*"}, []string{"terminal"}, []string{"files_read", "web_fetch", "browser_open", "mcp__github__create_issue", "mcp__arxiv__search", "weather"}},
		"core is every tool of coldness core":                {[]string{"core"}, nil, []string{"files_read", "terminal"}},
		"mcp:* is every server":                              {[]string{"mcp:*"}, nil, []string{"mcp__github__create_issue", "mcp__arxiv__search"}},
		"one server":                                         {[]string{"mcp:arxiv"}, nil, []string{"mcp__arxiv__search"}},
		"a tool without a toolset is in that of its label":   {[]string{"weather"}, nil, []string{"weather"}},
		"plugin:LABEL is one plugin":                         {[]string{"plugin:weather"}, nil, []string{"weather"}},
		"a block brings what it includes":                    {[]string{"research"}, nil, []string{"files_read", "web_fetch", "mcp__arxiv__search"}},
		"blocks nest":                                        {[]string{"outer"}, nil, []string{"files_read", "web_fetch", "mcp__arxiv__search", "weather"}},
		"a cycle ends":                                       {[]string{"a"}, nil, []string{"web_fetch", "browser_open"}},
		"exclusion wins over every toolset":                  {[]string{"web", "a"}, []string{"toolset:web"}, []string{"browser_open"}},
		"an excluded block is resolved like a granted one":   {nil, []string{"toolset:research"}, []string{"browser_open", "terminal", "mcp__github__create_issue", "weather"}},
		"exclusion by glob":                                  {nil, []string{"mcp__*", "*e*"}, nil},
		"exclusion by source":                                {nil, []string{"source:builtin", "source:plugin"}, []string{"mcp__github__create_issue", "mcp__arxiv__search"}},
		"an unknown toolset grants nothing":                  {[]string{"wether"}, nil, nil},
		"a tool's name is no toolset":                        {[]string{"terminal_x", "files_read"}, nil, nil},
		"excluding another thing does not bring in anything": {[]string{"core"}, []string{"web_fetch"}, []string{"files_read", "terminal"}},
	} {
		t.Run(name, func(t *testing.T) {
			sets, err := policy.NewToolsets(blocks)
			if err != nil {
				t.Fatal(err)
			}
			scope := sets.Scope(test.granted, test.exclude)
			var got []string
			for _, d := range tools {
				if _, out := scope.Excluded(d); scope.Granted(d) && !out {
					got = append(got, d.Name)
				}
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("granted (-want +got):\n%s", d)
			}
		})
	}
}

func TestScopeNamesTheToolsetThatSuppliesATool(t *testing.T) {
	sets, err := policy.NewToolsets(map[string][]string{"both": {"web", "browser"}})
	if err != nil {
		t.Fatal(err)
	}
	scope := sets.Scope([]string{"browser", "web", "both"}, nil)
	if d := cmp.Diff([]string{"web", "both"}, scope.Suppliers(builtin("web_fetch", "web", tool.Cold))); d != "" {
		t.Error(d)
	}
}

func TestScopeKeyIsTheSameForTheSameGrants(t *testing.T) {
	sets, err := policy.NewToolsets(map[string][]string{"both": {"web", "browser"}})
	if err != nil {
		t.Fatal(err)
	}
	same := sets.Scope([]string{"both"}, []string{"x", "y"})
	for name, other := range map[string]*policy.Scope{
		"order and spelling do not matter": sets.Scope([]string{"browser", "toolset:web"}, []string{"y", "x"}),
	} {
		if other.Key() != same.Key() {
			t.Errorf("%s: %s and %s", name, same.Key(), other.Key())
		}
	}
	for name, other := range map[string]*policy.Scope{
		"another exclusion": sets.Scope([]string{"both"}, []string{"x"}),
		"another grant":     sets.Scope([]string{"web"}, []string{"x", "y"}),
		"everything":        sets.Scope(nil, nil),
		"nothing":           sets.Scope([]string{}, nil),
		"no scope at all":   nil,
	} {
		if other.Key() == same.Key() {
			t.Errorf("%s has the same key", name)
		}
	}
}

func TestToolsetsRefuseLabelsThatMeanSomethingElse(t *testing.T) {
	for _, label := range []string{"core", "", "mcp:x", "*", "a b"} {
		if _, err := policy.NewToolsets(map[string][]string{label: {"web"}}); err == nil {
			t.Errorf("label %q was accepted", label)
		}
	}
	if _, err := policy.NewToolsets(map[string][]string{"x": {"mcp:["}}); err == nil {
		t.Error("a malformed glob was accepted")
	}
}

func TestUnknownToolsetsComeWithTheNearest(t *testing.T) {
	sets, err := policy.NewToolsets(map[string][]string{"research": {"web"}})
	if err != nil {
		t.Fatal(err)
	}
	got := sets.Unknown([]string{"reserch", "mcp:githb", "web", "core", "mcp:*"}, []*tool.Definition{mcp("github", "x"), builtin("web_fetch", "web", tool.Cold)})
	want := []policy.Unmatched{{Pattern: "reserch", Nearest: "research"}, {Pattern: "mcp:githb", Nearest: "mcp:github"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestDeferred(t *testing.T) {
	no := false
	core, cold, external := builtin("files_read", "files", tool.Core), builtin("todo_list", "todo", tool.Cold), mcp("kb", "search")
	for name, test := range map[string]struct {
		policy   policy.Defer
		tool     *tool.Definition
		provider *bool
		want     bool
	}{
		"external by default":                               {policy.Defer{}, external, nil, true},
		"cold built-ins by default":                         {policy.Defer{}, cold, nil, true},
		"core never by default":                             {policy.Defer{}, core, nil, false},
		"a bridge tool never":                               {policy.Defer{List: &[]string{"*"}}, builtin(tool.SearchName, "x", tool.Cold), nil, false},
		"pinned wins over the list":                         {policy.Defer{List: &[]string{"todo_list"}, Pin: []string{"todo_*"}}, cold, nil, false},
		"pinned external":                                   {policy.Defer{Pin: []string{"mcp__kb__search"}}, external, nil, false},
		"pinned by source":                                  {policy.Defer{Pin: []string{"source:mcp"}}, external, nil, false},
		"pinned by toolset":                                 {policy.Defer{Pin: []string{"toolset:kb"}}, external, nil, false},
		"an empty list keeps external tools eager":          {policy.Defer{List: &[]string{}}, external, nil, false},
		"an empty list keeps cold tools eager":              {policy.Defer{List: &[]string{}}, cold, nil, false},
		"a list replaces the curated one":                   {policy.Defer{List: &[]string{"image_generate"}}, cold, nil, false},
		"a list leaves external tools deferred":             {policy.Defer{List: &[]string{"image_generate"}}, external, nil, true},
		"a listed core tool is deferred":                    {policy.Defer{List: &[]string{"files_*"}}, core, nil, true},
		"the list comes before the provider's word":         {policy.Defer{List: &[]string{"mcp__kb__*"}}, external, &no, true},
		"the provider says defer = false":                   {policy.Defer{}, external, &no, false},
		"the provider's word does not reach cold built-ins": {policy.Defer{}, cold, &no, true},
		"a malformed glob selects nothing":                  {policy.Defer{List: &[]string{"[", "toolset:["}}, core, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.policy.Deferred(test.tool, test.provider); got != test.want {
				t.Errorf("deferred = %v, want %v", got, test.want)
			}
		})
	}
}

func TestDeferKnowsComposedToolsets(t *testing.T) {
	sets, err := policy.NewToolsets(map[string][]string{"night": {"todo"}})
	if err != nil {
		t.Fatal(err)
	}
	p := policy.Defer{Pin: []string{"toolset:night"}, Toolsets: sets}
	if p.Deferred(builtin("todo_list", "todo", tool.Cold), nil) {
		t.Error("a tool of a pinned composed toolset is deferred")
	}
}

func TestUnmatchedDeferPatternsComeWithTheNearest(t *testing.T) {
	p := policy.Defer{List: &[]string{"todo_lst", "todo_*", "source:mcp"}, Pin: []string{"nothing_like_it_at_all"}}
	got := p.Unmatched([]*tool.Definition{builtin("todo_list", "todo", tool.Cold)})
	want := []policy.Unmatched{
		{Key: "defer", Pattern: "todo_lst", Nearest: "todo_list"}, {Key: "defer", Pattern: "source:mcp"},
		{Key: "pin", Pattern: "nothing_like_it_at_all"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestCheckPattern(t *testing.T) {
	for pattern, ok := range map[string]bool{"web_*": true, "source:mcp": true, "source:*": true, "toolset:x": true, "[": false, "source:mpc": false} {
		if err := policy.CheckPattern(pattern); (err == nil) != ok {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"mcp__kb__search", "weather", "todo_list"}
	for given, want := range map[string][]string{
		"wether": {"weather"}, "WEATHER": {"weather"}, "todolist": {"todo_list"}, "file:///x": nil, "": nil, "todo_lsit": {"todo_list"},
	} {
		if d := cmp.Diff(want, policy.Nearest(given, slices.Values(names), 3)); d != "" {
			t.Errorf("%q: %s", given, d)
		}
	}
}

func TestDistanceIsAMetricWithinItsLimit(t *testing.T) {
	text := rapid.StringMatching(`[ab_]{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		d := policy.Distance(a, b, 100)
		if d != policy.Distance(b, a, 100) || (d == 0) != (a == b) {
			t.Fatalf("distance(%q, %q) = %d", a, b, d)
		}
		for limit := range 6 {
			if got := policy.Distance(a, b, limit); got != min(d, limit+1) {
				t.Fatalf("with limit %d: %d, without: %d", limit, got, d)
			}
		}
	})
}
