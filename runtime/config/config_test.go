package config_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/config"
)

// sameMeaning compares configurations whatever file and syntax they came from.
func TestAnEmptyFileIsTheDefaults(t *testing.T) {
	cfg, diags := config.Default(fakeEnv(nil))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := config.ToolSearch{
		Enabled: "auto", ThresholdPct: 10, SearchDefaultLimit: 5, MaxSearchLimit: 20, Listing: "auto", ListingPct: 5,
		ListingMaxTokens: 4000, DirectCall: "run",
		Names: map[string]string{"search": "tool_search", "describe": "tool_describe", "call": "tool_call"},
	}
	if diff := cmp.Diff(want, cfg.Tools.ToolSearch); diff != "" {
		t.Errorf("tool_search (-want +got):\n%s", diff)
	}
	if cfg.StateDir != "/home/ada/.local/state/hermesd" || cfg.Listen.Admin != "/home/ada/.local/state/hermesd/admin.sock" {
		t.Errorf("state_dir %q, admin %q", cfg.StateDir, cfg.Listen.Admin)
	}
}

func TestAnAgentDoesNotShareMapsWithTheOthers(t *testing.T) {
	cfg := mustParse(t, "config.hcl", `
agent "a" {
  tool_search {
    names    = { call = "act" }
    synonyms = { ticket = ["issue"] }
  }
}
agent "b" {}
`, fakeEnv(nil))
	if got := cfg.Agents[1].ToolSearch.Names[config.BridgeCall]; got != "tool_call" {
		t.Errorf("b's tool_call is named %q", got)
	}
	if got := cfg.Agents[0].ToolSearch.Names; got[config.BridgeCall] != "act" || got[config.BridgeSearch] != "tool_search" {
		t.Errorf("a's names are %v", got)
	}
	if len(cfg.Tools.ToolSearch.Synonyms) != 0 {
		t.Errorf("synonyms of a leaked: %v", cfg.Tools.ToolSearch.Synonyms)
	}
}

func TestDeferTellsAnEmptyListFromNone(t *testing.T) {
	tests := map[string]struct {
		keys string
		want *[]string
	}{
		"no key is the curated list":  {"", nil},
		"null is no key":              {"defer = null", nil},
		"an empty list defers nobody": {"defer = []", &[]string{}},
		"a list is taken as it is":    {`defer = ["a", "b*"]`, &[]string{"a", "b*"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := mustParse(t, "config.hcl", "tools {\n tool_search {\n"+test.keys+"\n}\n}\n", fakeEnv(nil))
			if diff := cmp.Diff(test.want, cfg.Tools.ToolSearch.Defer); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrefix(t *testing.T) {
	tests := map[string]struct {
		keys string
		want config.Prefix
	}{
		"nothing said":                  {"", config.Prefix{}},
		"false is nothing said":         {"prefix = false", config.Prefix{}},
		"true is the block's label":     {"prefix = true", config.Prefix{Set: true, Text: "notes"}},
		"a text":                        {`prefix = "n"`, config.Prefix{Set: true, Text: "n"}},
		"an empty text keeps the names": {`prefix = ""`, config.Prefix{Set: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := mustParse(t, "config.hcl", "mcp_server \"notes\" {\nurl = \"http://127.0.0.1:1/mcp\"\n"+test.keys+"\n}\n", fakeEnv(nil))
			if diff := cmp.Diff(test.want, cfg.MCPServers[0].Prefix); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiagnosticsInTheirForms(t *testing.T) {
	_, diags := config.Parse("config.hcl", []byte("log {\n  level = \"loud\"\n}\n"), fakeEnv(nil))
	if got, want := diags.Error(), `config.hcl:2,11: Invalid value for level; level must be "trace", "debug", "info", "warn" or "error".`; got != want {
		t.Errorf("Error() is %q, want %q", got, want)
	}
	encoded, err := diags.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var decoded []config.Diagnostic
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(diags.Items(), decoded); diff != "" {
		t.Errorf("JSON() (-want +got):\n%s", diff)
	}
	if diags.Err() == nil {
		t.Error("Err() is nil")
	}
	if _, none := config.Default(fakeEnv(nil)); none.Err() != nil {
		t.Errorf("Err() without errors is %v", none.Err())
	}
}
