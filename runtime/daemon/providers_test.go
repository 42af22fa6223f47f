package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// A block is often switched off because it does not work, so nothing of it may stop the daemon.
func TestWhatIsSwitchedOffIsSeenAndNotStarted(t *testing.T) {
	d := run(t, `
listen {
  http = "off"
}
plugin "gone" {
  path    = "no/such/file"
  enabled = false
}
mcp_server "old" {
  command = ["no-such-program"]
  enabled = false
}
`)
	<-d.Settled()
	got := map[provider.Identity]provider.State{}
	for _, p := range (facts{d: d}).Providers() {
		if status := p.Offer().Status; status.Reason != "" {
			got[p.Identity()] = status.State
		}
		_, err := p.Invoke(t.Context(), &provider.Request{})
		if e := tool.AsError(err); e == nil || e.Code != tool.ProviderDown {
			t.Errorf("a call ended with %v", err)
		}
	}
	want := map[provider.Identity]provider.State{
		{Name: "gone", Source: tool.SourcePlugin}: provider.Disabled, {Name: "old", Source: tool.SourceMCP}: provider.Disabled,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An operator who lists no tool to offer does not mean all of them.
func TestAnIncludeOfNothingIsNotOneOfEverything(t *testing.T) {
	for name, tt := range map[string]struct {
		tools string
		want  []string
	}{
		"no word about tools": {"", []string{"*"}},
		"excluding only":      {"tools {\n  exclude = [\"a\"]\n}", []string{"*"}},
		"nothing":             {"tools {\n  include = []\n}", []string{}},
		"some":                {"tools {\n  include = [\"a\"]\n}", []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.hcl")
			if err := os.WriteFile(file, []byte("mcp_server \"x\" {\n  command = [\"x\"]\n  "+tt.tools+"\n}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, diags := config.Load(file, &config.Environment{})
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			o, err := mcpOptions(cfg, &cfg.MCPServers[0], directories{}, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, o.Include); diff != "" {
				t.Error(diff)
			}
		})
	}
}
