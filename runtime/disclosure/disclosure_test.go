package disclosure_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/policy"
	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func assemble(c *catalog.Catalog, s disclosure.Settings) *disclosure.Assembly {
	return disclosure.New(c).For(&disclosure.Agent{Name: "desk", Settings: s})
}

func names(tools []disclosure.Tool) []string {
	var list []string
	for _, t := range tools {
		list = append(list, t.Name)
	}
	return list
}

func encode(t *testing.T, a *disclosure.Assembly) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(a.Tools); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var bridge = []string{"tool_search", "tool_describe", "tool_call"}

func TestWhatIsListed(t *testing.T) {
	core := []string{"files_read", "files_write"}
	all := []string{"files_read", "files_write", "mcp__kb__create_issue", "todo_list"}
	for name, test := range map[string]struct {
		settings disclosure.Settings
		want     []string
		tier     int
	}{
		"auto below the threshold is a pass-through": {disclosure.Settings{}, all, disclosure.TierAll},
		"auto from the threshold on defers":          {disclosure.Settings{ContextLength: 1000}, append(slices.Clone(core), bridge...), disclosure.TierNames},
		"a threshold of zero always defers":          {disclosure.Settings{ThresholdPct: new(0.0)}, append(slices.Clone(core), bridge...), disclosure.TierNames},
		"on defers whenever something can be":        {disclosure.Settings{Enabled: disclosure.On}, append(slices.Clone(core), bridge...), disclosure.TierNames},
		"off never defers":                           {disclosure.Settings{Enabled: disclosure.Off, ContextLength: 1000}, all, disclosure.TierAll},
		"an empty list keeps everything eager":       {disclosure.Settings{Enabled: disclosure.On, Defer: policy.Defer{List: &[]string{}}}, all, disclosure.TierAll},
		"a list replaces the curated one":            {disclosure.Settings{Enabled: disclosure.On, Defer: policy.Defer{List: &[]string{"files_*"}}}, append([]string{"todo_list"}, bridge...), disclosure.TierNames},
		"a pin wins over everything":                 {disclosure.Settings{Enabled: disclosure.On, Defer: policy.Defer{Pin: []string{"mcp__kb__*"}}}, append([]string{"files_read", "files_write", "mcp__kb__create_issue"}, bridge...), disclosure.TierNames},
		"listing off counts the sources":             {disclosure.Settings{Enabled: disclosure.On, Listing: disclosure.Off}, append(slices.Clone(core), bridge...), disclosure.TierSources},
	} {
		t.Run(name, func(t *testing.T) {
			a := assemble(catalogOf(files(), server("kb", 1)), test.settings)
			if d := cmp.Diff(test.want, names(a.Tools)); d != "" {
				t.Errorf("listed (-want +got):\n%s", d)
			}
			if a.Tier != test.tier {
				t.Errorf("tier %d, want %d", a.Tier, test.tier)
			}
			for _, e := range a.View.Entries() {
				listed := slices.Contains(test.want, e.Definition.Name)
				if a.Deferred(e.Definition.Name) == listed {
					t.Errorf("%s: listed %v, deferred %v", e.Definition.Name, listed, !listed)
				}
			}
		})
	}
}

func TestAProviderMaySayThatItsToolsAreNotDeferred(t *testing.T) {
	kb := server("kb", 1)
	kb.identity.Defer = new(false)
	a := assemble(catalogOf(kb, server("other", 1)), disclosure.Settings{Enabled: disclosure.On})
	if d := cmp.Diff(append([]string{"mcp__kb__create_issue"}, bridge...), names(a.Tools)); d != "" {
		t.Error(d)
	}
}

func TestConnectorsNeedTheBridgeAlthoughNothingIsDeferred(t *testing.T) {
	a := disclosure.New(catalogOf(server("kb", 1))).For(&disclosure.Agent{Connectors: true})
	if d := cmp.Diff(append([]string{"mcp__kb__create_issue"}, bridge...), names(a.Tools)); d != "" || a.Tier == disclosure.TierAll {
		t.Errorf("tier %d: %s", a.Tier, d)
	}
}

func TestTheListing(t *testing.T) {
	c := catalogOf(files(), server("tracker", 3), server("kb", 1))
	a := assemble(c, disclosure.Settings{Enabled: disclosure.On})
	want := `Deferred tools by source:
files (1 tool):
- todo_list: Keeps a list of what is to be done
kb (1 tool):
- mcp__kb__create_issue: Creates one issue of kb, e.g. the newest
tracker (3 tools):
- mcp__tracker__create_issue: Creates one issue of tracker, e.g. the newest
- mcp__tracker__delete_issue: Deletes one issue of tracker, e.g. the newest
- mcp__tracker__update_issue: Updates one issue of tracker, e.g. the newest
`
	if d := cmp.Diff(want, a.Listing); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for tokens, want := range map[int]string{
		80: `Deferred tools by source:
files (1 tool):
- todo_list: Keeps a list of what is to be done
kb (1 tool):
- mcp__kb__create_issue: Creates one issue of kb, e.g. the newest
tracker (3 tools): mcp__tracker__create_issue, mcp__tracker__delete_issue, mcp__tracker__update_issue
`,
		48: `Deferred tools by source:
files (1 tool): todo_list
kb (1 tool): mcp__kb__create_issue
tracker (3 tools): mcp__tracker__create_issue, mcp__tracker__delete_issue, mcp__tracker__update_issue
`,
		46: `Deferred tools by source:
files (1 tool): todo_list
kb (1 tool):
- mcp__kb__create_issue: Creates one issue of kb, e.g. the newest
tracker (3 tools)
`,
		25: `Deferred tools by source:
files (1 tool)
kb (1 tool): mcp__kb__create_issue
tracker (3 tools)
`,
		15: "Deferred tools by source:\nfiles (1 tool)\nand 2 more sources\n",
		5:  "",
	} {
		got := assemble(c, disclosure.Settings{Enabled: disclosure.On, Listing: disclosure.On, ListingMaxTokens: tokens}).Listing
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("in %d tokens (-want +got):\n%s", tokens, d)
		}
	}
}

// Guards fault openclaw 153032: a client defers or renames the gateway's own tools.
func TestCoreToolsAndTheBridgeAreAlwaysLoaded(t *testing.T) {
	a := assemble(catalogOf(files(), server("kb", 1), server("pinned", 1)), disclosure.Settings{Enabled: disclosure.On, Defer: policy.Defer{Pin: []string{"mcp__pinned__*"}}})
	for _, tl := range a.Tools {
		var meta map[string]any
		if err := json.Unmarshal(tl.Meta, &meta); err != nil || meta["anthropic/alwaysLoad"] != true {
			t.Errorf("%s: _meta %s", tl.Name, tl.Meta)
		}
	}
	if got, want := string(a.Tools[1].Meta), `{"a":"<b>","anthropic/alwaysLoad":true,"z":1}`; got != want {
		t.Errorf("a tool's own _meta became %s, want %s", got, want)
	}
	through := assemble(catalogOf(files(), server("kb", 1)), disclosure.Settings{Enabled: disclosure.Off})
	for _, tl := range through.Tools {
		if always := bytes.Contains(tl.Meta, []byte("alwaysLoad")); always != strings.HasPrefix(tl.Name, "files_") {
			t.Errorf("%s: always loaded %v", tl.Name, always)
		}
	}
}

func TestTheBridgeAloneIsUnderTwoKilobytes(t *testing.T) {
	a := assemble(catalogOf(server("kb", 100)), disclosure.Settings{Enabled: disclosure.On, Listing: disclosure.Off, ListingPct: new(0.0)})
	if a.Listing != "" {
		t.Fatal("there is a listing")
	}
	if n := len(encode(t, a)); n >= 1950 {
		t.Errorf("%d bytes:\n%s", n, encode(t, a))
	}
}

func TestTheBridgeToolsCanBeRenamed(t *testing.T) {
	hidden := offering(tool.SourcePlugin, "p", tool.Definition{Name: "dispatch_action"}, tool.Definition{Name: "other"})
	c := catalogOf(hidden, files())
	agent := &disclosure.Agent{Name: "desk", Settings: disclosure.Settings{Enabled: disclosure.On, Names: disclosure.Names{Call: "dispatch_action"}}}
	a := disclosure.New(c).For(agent)
	if d := cmp.Diff([]string{"files_read", "files_write", "tool_search", "tool_describe", "dispatch_action"}, names(a.Tools)); d != "" {
		t.Error(d)
	}
	if text := encode(t, a); strings.Contains(text, "tool_call") {
		t.Errorf("the old name stands in the text:\n%s", text)
	}
	for name, want := range map[string]catalog.BridgeKind{
		"tool_search": catalog.BridgeSearch, "tool_describe": catalog.BridgeDescribe, "dispatch_action": catalog.BridgeCall,
		"tool_call": catalog.BridgeCall, "Dispatch-Action": catalog.BridgeCall, "other": "",
	} {
		if kind, ok := a.Bridge(name); kind != want || ok != (want != "") {
			t.Errorf("%s means %q", name, kind)
		}
	}
	if _, err := a.View.Find("dispatch_action"); tool.CodeOf(err) != tool.UnknownTool {
		t.Errorf("the hidden tool can be found: %v", err)
	}
	if w := disclosure.Warnings(agent, c.Snapshot()); len(w) != 1 || !strings.Contains(w[0], "dispatch_action") {
		t.Errorf("warnings: %q", w)
	}
}

// Guards fault 116404: a name in defer that nothing has is told, with the nearest.
func TestPatternsThatSelectNothingAreWarned(t *testing.T) {
	agent := &disclosure.Agent{Settings: disclosure.Settings{Defer: policy.Defer{List: &[]string{"todo_lst"}, Pin: []string{"headroom_retrieve"}}}}
	want := []string{
		`defer: no tool matches "todo_lst"; its provider may be absent, or "todo_list" was meant`,
		`pin: no tool matches "headroom_retrieve"; its provider may be absent`,
	}
	if d := cmp.Diff(want, disclosure.Warnings(agent, catalogOf(files()).Snapshot())); d != "" {
		t.Error(d)
	}
}

func TestTheTextTeachesByTier(t *testing.T) {
	for name, test := range map[string]struct {
		settings disclosure.Settings
		says     []string
		not      []string
	}{
		"every tier": {disclosure.Settings{Enabled: disclosure.On, ListingPct: new(0.0)},
			[]string{"If the exact name is in view, skip the search", "Before you say that something is missing", "service, action, object"}, []string{"Never call a listed"}},
		"names are listed": {disclosure.Settings{Enabled: disclosure.On},
			[]string{"Never call a listed tool unavailable", "mcp__kb__create_issue"}, []string{"number alone"}},
		"sources are listed": {disclosure.Settings{Enabled: disclosure.On, Listing: disclosure.Off},
			[]string{"number alone", "kb (9 tools)"}, []string{"mcp__kb__create_issue"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := encode(t, assemble(catalogOf(server("kb", 9)), test.settings))
			for _, s := range test.says {
				if !strings.Contains(text, s) {
					t.Errorf("it does not say %q:\n%s", s, text)
				}
			}
			for _, s := range test.not {
				if strings.Contains(text, s) {
					t.Errorf("it says %q:\n%s", s, text)
				}
			}
		})
	}
}

// Guards fault claude-code 92033: a changed tool list throws the prompt cache away.
func TestTheBytesStayWhileProvidersComeAndGo(t *testing.T) {
	for name, settings := range map[string]disclosure.Settings{
		"deferred": {Enabled: disclosure.On}, "by threshold": {ContextLength: 4000}, "eager": {Enabled: disclosure.Off},
	} {
		t.Run(name, func(t *testing.T) {
			kb, late := server("kb", 20), server("late", 5)
			late.status(provider.Starting)
			c := catalogOf(files(), kb, late)
			d := disclosure.New(c)
			agent := &disclosure.Agent{Name: "desk", Settings: settings}
			want := encode(t, d.For(agent))
			states := []provider.State{
				provider.Starting, provider.Ready, provider.Backoff, provider.Starting, provider.Quarantined, provider.Installed,
				provider.Stopped, provider.Draining, provider.Ready, provider.Ready,
			}
			for i, state := range states {
				late.status(states[len(states)-1-i])
				kb.status(state)
				c.Refresh()
				a := d.For(agent)
				if got := encode(t, a); got != want {
					t.Fatalf("with a provider %s the bytes changed:\n%s", state, cmp.Diff(want, got))
				}
				fresh := disclosure.New(catalogOf(late, kb, files())).For(agent)
				if got := encode(t, fresh); got != want || fresh.Digest != a.Digest {
					t.Fatalf("assembled anew, in another order, the bytes changed:\n%s", cmp.Diff(want, got))
				}
			}
		})
	}
}

func TestAnAssemblyIsKeptUntilTheToolsOrTheAgentChange(t *testing.T) {
	kb := server("kb", 3)
	c := catalogOf(kb)
	d := disclosure.New(c)
	agent := &disclosure.Agent{Name: "desk"}
	first := d.For(agent)
	kb.status(provider.Backoff)
	c.Refresh()
	if d.For(agent) != first {
		t.Error("assembled again although nothing changed")
	}
	if again := d.For(&disclosure.Agent{Name: "desk", Settings: disclosure.Settings{Enabled: disclosure.On}}); again == first || again.Digest == first.Digest {
		t.Error("a changed agent sees the old list")
	}
	next := *kb.offer.Load()
	next.Tools = next.Tools[:2]
	kb.offer.Store(&next)
	c.Refresh()
	if now := d.For(agent); len(now.Tools) != 2 || now.Digest == first.Digest {
		t.Errorf("a tool went, and the list is %v", names(now.Tools))
	}
}

func TestInputSchemasAreOfTypeObject(t *testing.T) {
	a := assemble(catalogOf(offering(tool.SourcePlugin, "p",
		tool.Definition{Name: "a", InputSchema: json.RawMessage(`{"type":"object","x":1}`)},
		tool.Definition{Name: "b", InputSchema: json.RawMessage(`{"required":["<x>"]}`)},
		tool.Definition{Name: "c", InputSchema: json.RawMessage(`{"type":["object","null"]}`)},
	)), disclosure.Settings{})
	want := []string{`{"type":"object","x":1}`, `{"required":["<x>"],"type":"object"}`, `{"type":"object"}`}
	for i, tl := range a.Tools {
		if string(tl.InputSchema) != want[i] {
			t.Errorf("%s: %s, want %s", tl.Name, tl.InputSchema, want[i])
		}
	}
}

// Guards fault 47707 where it is not the input schema that is wrong.
func TestWhatAProviderGetsWrongSpoilsNothingElse(t *testing.T) {
	a := assemble(catalogOf(offering(tool.SourcePlugin, "p",
		tool.Definition{Name: "a", OutputSchema: json.RawMessage(`{"type":"object"}`), Icons: json.RawMessage(`[]`), Meta: json.RawMessage(`{"x":1}`)},
		tool.Definition{Name: "b", OutputSchema: json.RawMessage(`{"type":"array"}`), Icons: json.RawMessage(`[`), Meta: json.RawMessage(`{"x":`), Coldness: tool.Core},
		tool.Definition{Name: "c", OutputSchema: json.RawMessage(`{"type":`)},
	)), disclosure.Settings{})
	for i, want := range []disclosure.Tool{
		{OutputSchema: json.RawMessage(`{"type":"object"}`), Icons: json.RawMessage(`[]`), Meta: json.RawMessage(`{"x":1}`)},
		{Meta: json.RawMessage(`{"anthropic/alwaysLoad":true}`)}, {},
	} {
		got := a.Tools[i]
		if string(got.OutputSchema) != string(want.OutputSchema) || string(got.Icons) != string(want.Icons) || string(got.Meta) != string(want.Meta) {
			t.Errorf("%s: output %s, icons %s, _meta %s", got.Name, got.OutputSchema, got.Icons, got.Meta)
		}
	}
}

func TestASearchRanksWhatMayBeDeferred(t *testing.T) {
	for _, enabled := range []string{disclosure.On, disclosure.Off} {
		a := assemble(catalogOf(files(), server("kb", 1)), disclosure.Settings{Enabled: enabled})
		var got []string
		for _, e := range a.Searchable.Entries() {
			got = append(got, e.Definition.Name)
		}
		if d := cmp.Diff([]string{"mcp__kb__create_issue", "todo_list"}, got); d != "" {
			t.Errorf("%s: %s", enabled, d)
		}
	}
}
