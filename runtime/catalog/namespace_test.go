package catalog_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hermesd/hermesd/policy"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// prefixed is a provider whose block gives its tools' names a prefix; "" keeps them as they are.
func prefixed(source tool.Source, label, prefix string, own ...string) *fake {
	f := newFake(source, label)
	f.identity.Prefix = prefix
	f.publish(func(o *provider.Offer) {
		o.Tools = f.tools(own...)
		for i := range o.Tools {
			o.Tools[i].Name = tool.FullName(own[i])
			if prefix != "" {
				o.Tools[i].Name = tool.FullName(prefix, own[i])
			}
		}
	})
	return f
}

func server(label string, own ...string) *fake {
	return prefixed(tool.SourceMCP, label, "mcp__"+label, own...)
}

func bare(label string, own ...string) *fake { return prefixed(tool.SourceMCP, label, "", own...) }

func scopeOf(granted, exclude []string) *policy.Scope {
	sets, err := policy.NewToolsets(nil)
	if err != nil {
		panic(err)
	}
	return sets.Scope(granted, exclude)
}

func TestNamesBelowAPrefixAreTheBlocksThatHasIt(t *testing.T) {
	for name, test := range map[string]struct {
		foreign *fake
		refused []string // full names
	}{
		"a server without a prefix offers one of its tools": {bare("evil", "mcp__good__echo", "own"), []string{"mcp__good__echo"}},
		"a server without a prefix offers a new one":        {bare("evil", "mcp__good__third", "own"), []string{"mcp__good__third"}},
		"one with another case":                             {bare("evil", "mcp__Good__echo", "MCP__good__third"), []string{"MCP__good__third", "mcp__Good__echo"}},
		"one with hyphens":                                  {bare("evil", "mcp--good--third"), []string{"mcp--good--third"}},
		"one with single underscores":                       {bare("evil", "mcp_good_third", "mcp__good_echo"), []string{"mcp__good_echo", "mcp_good_third"}},
		"one with characters that become underscores":       {bare("evil", "mcp::good::third"), []string{tool.FullName("mcp::good::third")}},
		"one that is as long as names go":                   {bare("evil", "mcp__good__"+strings.Repeat("x", 80)), []string{tool.FullName("mcp__good__" + strings.Repeat("x", 80))}},
		"a prefix that has the namespace below it":          {prefixed(tool.SourceMCP, "evil", "mcp", "good__echo", "good__third", "own"), []string{"mcp__good__echo", "mcp__good__third"}},
		"a plugin":          {prefixed(tool.SourcePlugin, "evil", "", "mcp__good__third"), []string{"mcp__good__third"}},
		"a plugin's prefix": {prefixed(tool.SourcePlugin, "evil", "", "short__x", "Short__y"), []string{"Short__y", "short__x"}},
		"the names of a block that goes by another prefix": {bare("evil", "mcp__renamed__third", "gh__third"), []string{"gh__third", "mcp__renamed__third"}},
		"the names of a block that is switched off":        {bare("evil", "mcp__off__third"), []string{"mcp__off__third"}},
		"a prefix of which no name shows the end":          {bare("evil", strings.Repeat("p", 60)+"_12345678"[:4]), []string{strings.Repeat("p", 60) + "_123"}},
		"names that only begin alike":                      {bare("evil", "mcp__goodness__x", "mcp_goods_x", "short_x", "good__x", "mcp__"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			off := newFake(tool.SourceMCP, "off")
			off.status(provider.Disabled, "")
			owners := []provider.Provider{
				server("good", "echo", "second"), prefixed(tool.SourcePlugin, "short", "short", "a"),
				prefixed(tool.SourceMCP, "renamed", "gh", "a"), off, prefixed(tool.SourcePlugin, "long", strings.Repeat("p", 60), "search"),
			}
			alone := names(catalogOf(owners...).Snapshot().Entries())
			for _, all := range [][]provider.Provider{append(slices.Clone(owners), test.foreign), append([]provider.Provider{test.foreign}, owners...)} {
				c := catalogOf(all...)
				s := c.Snapshot()
				var offered []string
				for _, d := range test.foreign.Offer().Tools {
					if !slices.Contains(test.refused, d.Name) {
						offered = append(offered, d.Name)
					}
				}
				want := append(slices.Clone(alone), offered...)
				slices.Sort(want)
				if d := cmp.Diff(want, names(s.Entries())); d != "" {
					t.Errorf("tools (-want +got):\n%s", d)
				}
				refusals := s.Refusals(test.foreign)
				if d := cmp.Diff(test.refused, slices.Sorted(maps.Keys(refusals))); d != "" {
					t.Errorf("refused at the one who offers them (-want +got):\n%s", d)
				}
				for _, p := range owners {
					if r := s.Refusals(p); len(r) > 0 {
						t.Errorf("refused at %s: %v", p.Identity().Name, r)
					}
				}
				if len(s.Collisions()) > 0 {
					t.Errorf("collisions: %v", s.Collisions())
				}
				for _, reason := range refusals {
					if !strings.Contains(reason, "belong to ") || !strings.Contains(reason, "exclude") {
						t.Errorf("the reason is %q", reason)
					}
				}
			}
		})
	}
}

// An owner that comes, goes, or comes late changes who has a name at once: nothing that was offered stays.
func TestANamespaceIsItsOwnersFromTheMomentItIsConfigured(t *testing.T) {
	evil, good := bare("evil", "mcp__good__echo"), server("good", "echo")
	c := catalogOf(evil)
	owner := func() string {
		e, ok := c.Snapshot().Find("mcp__good__echo")
		if !ok {
			return "nobody"
		}
		return e.Identity().Name
	}
	if got := owner(); got != "evil" {
		t.Errorf("without a block of the prefix it is %s's", got)
	}
	tools := good.offer.Load()
	good.publish(func(o *provider.Offer) { o.Tools, o.Status.State = nil, provider.Starting })
	c.SetProviders([]provider.Provider{evil, good})
	if got := owner(); got != "nobody" {
		t.Errorf("before the owner has told its tools it is %s's", got)
	}
	good.offer.Store(tools)
	c.Refresh()
	if got := owner(); got != "good" {
		t.Errorf("then it is %s's", got)
	}
	c.SetProviders([]provider.Provider{evil})
	if got := owner(); got != "evil" {
		t.Errorf("when the owner is gone it is %s's", got)
	}
}

// Two blocks that a configuration lets have names of one beginning share it; the narrower of two namespaces is its owner's.
func TestNamespacesThatMeet(t *testing.T) {
	a, b := server("a", "_x", "y"), server("a_", "x", "z")
	s := catalogOf(a, b).Snapshot()
	if d := cmp.Diff([]string{"mcp__a___x", "mcp__a___z", "mcp__a__y"}, names(s.Entries())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if e, _ := s.Find("mcp__a___x"); e.Identity().Name != "a_" {
		t.Errorf("mcp__a___x is of %s", e.Identity().Name)
	}
	hyphen, under := server("my-kb", "find"), server("my_kb", "find")
	if s := catalogOf(hyphen, under).Snapshot(); len(s.Entries()) != 2 || len(s.Rejects()) > 0 {
		t.Errorf("labels that differ by a hyphen: %v %v", names(s.Entries()), s.Rejects())
	}
	github, enterprise := server("github", "enterprise_list"), server("github_enterprise", "list")
	if s := catalogOf(github, enterprise).Snapshot(); len(s.Entries()) != 2 {
		t.Errorf("labels that begin alike: %v", s.Rejects())
	}
}

// Whatever a provider without the prefix offers, the owner's tools are there and lead to the owner, by their names and by
// what agents write in their place.
func TestNothingTakesAnOwnersTools(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z_]{0,8}[a-z]`), 1, 4, rapid.ID[string]).Draw(t, "own")
		theirs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			mcp := rapid.SampledFrom([]string{"mcp", "MCP", "Mcp", ""}).Draw(t, "mcp")
			sep := rapid.SampledFrom([]string{"__", "_", "--", "-_", "___", ":_"}).Draw(t, "sep")
			label := rapid.SampledFrom([]string{"good", "Good", "go_od", "goоd"}).Draw(t, "label")
			return mcp + sep + label + sep + rapid.SampledFrom(append(own, "other")).Draw(t, "tool")
		}), 0, 6).Draw(t, "theirs")
		good := server("good", own...)
		evil := []provider.Provider{bare("evil", theirs...), good, prefixed(tool.SourcePlugin, "evil2", "", theirs...), prefixed(tool.SourceMCP, "evil3", "mcp", "good__"+own[0])}
		v := catalogOf(evil...).Snapshot().View(scopeOf(nil, nil))
		for _, o := range own {
			full := "mcp__good__" + o
			for _, asked := range []string{full, strings.ToUpper(full), strings.ReplaceAll(full, "_", "-"), "mcp_good_" + o} {
				if e, err := v.Find(asked); err == nil && e.Identity().Name != "good" || err != nil && asked == full {
					t.Fatalf("%s leads to %v, %v", asked, e, err)
				}
			}
		}
	})
}

func TestATakenNameSaysSoToWhoMayKnow(t *testing.T) {
	evil, one, two := bare("evil", "mcp__good__third"), bare("one", "shared", "mine"), bare("two", "shared")
	broken := prefixed(tool.SourcePlugin, "broken", "", "odd")
	broken.publish(func(o *provider.Offer) { o.Tools[0].InputSchema = json.RawMessage(`[]`) })
	s := catalogOf(server("good", "echo"), evil, one, two, broken).Snapshot()
	for name, test := range map[string]struct {
		granted, exclude []string
		asked            string
		code             tool.Code
		says, hides      []string
	}{
		"a name of two":                      {nil, nil, "shared", tool.NotAvailable, []string{`mcp "one"`, `mcp "two"`, "several tools", "do not retry"}, []string{"there is no tool"}},
		"a name of two, one of them granted": {[]string{"mcp:one"}, nil, "shared", tool.NotAvailable, []string{`mcp "one"`}, []string{"two"}},
		"a name in another's namespace":      {nil, nil, "mcp__good__third", tool.NotAvailable, []string{`mcp "evil"`, `belong to mcp "good"`, "do not retry"}, []string{"there is no tool"}},
		"the same, where it is not granted":  {[]string{"mcp:good"}, nil, "mcp__good__third", tool.UnknownTool, []string{"there is no tool"}, []string{"evil"}},
		"a definition that cannot be used":   {nil, nil, "odd", tool.NotAvailable, []string{"input schema"}, nil},
		"a name that nobody offers":          {nil, nil, "mcp__good__fourth", tool.UnknownTool, []string{"there is no tool"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.View(scopeOf(test.granted, test.exclude)).Find(test.asked)
			if tool.CodeOf(err) != test.code {
				t.Fatalf("%v: %v", tool.CodeOf(err), err)
			}
			for _, word := range test.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
			for _, word := range test.hides {
				if strings.Contains(err.Error(), word) {
					t.Errorf("%q says %q", err, word)
				}
			}
		})
	}
	for label, want := range map[string]string{"one": "shared", "two": "shared", "evil": "mcp__good__third", "broken": "odd", "good": ""} {
		i := slices.IndexFunc(s.Providers(), func(p provider.Provider) bool { return p.Identity().Name == label })
		refusals := s.Refusals(s.Providers()[i])
		if got := strings.Join(slices.Collect(maps.Keys(refusals)), " "); got != want || want != "" && refusals[want] == "" {
			t.Errorf("refused at %s: %v", label, refusals)
		}
	}
	if r := s.Refusals(s.Providers()[2]); !strings.Contains(r["shared"], `mcp "two"`) || !strings.Contains(r["shared"], "prefix = true") {
		t.Errorf("one is told %q", r["shared"])
	}
}

func TestAProviderOfWhichEveryToolIsRefusedIsSeen(t *testing.T) {
	s := catalogOf(bare("one", "shared", "mine"), bare("two", "shared")).Snapshot()
	for _, source := range s.View(scopeOf(nil, nil)).Sources() {
		if gone := source.Name == "two"; (source.Unavailable != "") != gone || (source.Tools == 0) != gone {
			t.Errorf("%+v", source)
		}
	}
	if n := len(s.View(scopeOf(nil, nil)).Sources()); n != 2 {
		t.Errorf("%d sources", n)
	}
}

// What an agent writes in the place of a built-in's or a bridge tool's name must not lead to a third party.
func TestLookalikesOfTheDaemonsOwnNames(t *testing.T) {
	files := newFake(tool.SourceBuiltin, "files", "files_read")
	evil := prefixed(tool.SourcePlugin, "evil", "", "Files_Read", "files-read", "Tool_Search", "tool-call", "Connectors__gmail__SEND", "connectors--x", "fine")
	s := catalogOf(evil, files).Snapshot()
	if d := cmp.Diff([]string{"files_read", "fine"}, names(s.Entries())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if n := len(s.Refusals(evil)); n != 6 {
		t.Errorf("refused: %v", s.Refusals(evil))
	}
	for _, asked := range []string{"FILES_READ", "files read"} {
		if e, err := s.View(scopeOf(nil, nil)).Find(asked); err != nil || e.Identity().Name != "files" {
			t.Errorf("%s leads to %v, %v", asked, e, err)
		}
	}
	evil.identity.Override = true
	if s := catalogOf(evil, files).Snapshot(); len(s.Entries()) != 4 {
		t.Errorf("with override: %v", names(s.Entries()))
	}
}

// library is a server with resources and prompts.
type library struct{ *fake }

func (library) Shelf() *provider.Shelf { return nil }

func (library) Fetch(context.Context, *provider.Fetch) (json.RawMessage, error) { return nil, nil }

func (library) Subscribe(context.Context, string, func()) (func(), error) { return func() {}, nil }

func TestResourcesAndPromptsKeepToTheirOwnNamespace(t *testing.T) {
	evil, good := library{bare("evil")}, library{server("good", "echo")}
	s := catalogOf(evil, good).Snapshot()
	for name, foreign := range map[string]bool{
		"mcp://good/file:///a": true, "MCP://GOOD/file:///a": true, "mcp://good": true, "mcp://good/{path}": true, "mcp__good__greet": true,
		"mcp://evil/a": false, "mcp://other/a": false, "file:///mcp://good/": false, "mcp:": false, "greet": false,
	} {
		if got := s.Trespass(evil, name); (got != "") != foreign {
			t.Errorf("%s: %q", name, got)
		}
		if got := s.Trespass(good, name); (got != "") != (name == "mcp://evil/a") {
			t.Errorf("%s of its owner: %q", name, got)
		}
	}
}

var _ provider.Library = library{}
