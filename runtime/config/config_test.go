package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hermesd/hermesd/runtime/config"
)

// sameMeaning compares configurations whatever file and syntax they came from.
var sameMeaning = cmp.Options{
	cmpopts.IgnoreUnexported(config.Config{}),
	cmpopts.IgnoreFields(config.Config{}, "Files"),
	cmpopts.IgnoreTypes(config.Position{}),
	cmpopts.IgnoreFields(config.Rule{}, "When"), // Rule.Text is its source
}

func everything(t *testing.T) (*config.Config, *config.Environment) {
	t.Helper()
	vars := map[string]string{}
	for _, name := range []string{"NOTES_TOKEN", "GITHUB_TOKEN", "HOOK_SECRET", "APPROVALS_SECRET", "OTLP_TOKEN", "EMBEDDINGS_KEY"} {
		vars[name] = "secret-" + name
	}
	src := strings.ReplaceAll(switchedOn(readExample(t)), `"Bearer ${secret("env:TRACKER_TOKEN")}"`, `"${"$"}{no template}"`)
	env := fakeEnv(vars)
	return mustParse(t, "/etc/hermesd/config.hcl", src, env), env
}

func TestWhatIsShownLoadsToTheSameAgain(t *testing.T) {
	cfg, env := everything(t)
	shows := map[string]func(*bytes.Buffer) error{
		"config.hcl":      func(b *bytes.Buffer) error { return cfg.Show(b) },
		"config.hcl.json": func(b *bytes.Buffer) error { return cfg.ShowJSON(b) },
	}
	for name, show := range shows {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := show(&b); err != nil {
				t.Fatal(err)
			}
			again := mustParse(t, "/etc/hermesd/"+name, b.String(), env)
			if diff := cmp.Diff(cfg, again, sameMeaning, cmpopts.SortSlices(func(a, b config.Secret) bool { return a.Ref < b.Ref })); diff != "" {
				t.Errorf("(-loaded +shown and loaded):\n%s\n%s", diff, b.String())
			}
		})
	}
}

func TestShownConfigurationsHaveNoSecrets(t *testing.T) {
	cfg, _ := everything(t)
	var b bytes.Buffer
	if err := errors.Join(cfg.Show(&b), cfg.ShowJSON(&b)); err != nil {
		t.Fatal(err)
	}
	if len(cfg.Secrets) != 6 {
		t.Errorf("%d secrets, want 6", len(cfg.Secrets))
	}
	for _, s := range cfg.Secrets {
		if strings.Contains(b.String(), s.Value) {
			t.Errorf("%s is shown", s.Ref)
		}
	}
}

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

func TestAToolsetThatNoProviderBroughtIsReportedAtItsPlace(t *testing.T) {
	cfg := mustParse(t, "config.hcl", `
agent "desk" {
  toolsets = ["core", "research", "weather", "flies"]
}
toolset "research" {
  include = ["web"]
}
`, fakeEnv(nil))
	diags := cfg.CheckToolsets([]string{"weather", "files", "web"})
	want := []config.Diagnostic{{
		Severity: "error", Summary: `Unknown toolset "flies"`, File: "config.hcl", Line: 3, Column: 46,
		Detail: `No toolset block and no provider has it. Did you mean "files"?`,
	}}
	if diff := cmp.Diff(want, diags.Items()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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

func TestTextThatWouldExhaustTheParserIsRefused(t *testing.T) {
	tests := map[string]struct{ path, src, want string }{
		"brackets in brackets":      {"c.hcl", "watch = " + strings.Repeat("(", 500_000), "too complex"},
		"blocks in blocks":          {"c.hcl", strings.Repeat("a {\n", 101), "too complex"},
		"a chain of negations":      {"c.hcl", "watch = " + strings.Repeat("!", 50_000), "too complex"},
		"a chain of sums":           {"c.hcl", "watch = 1" + strings.Repeat("+1", 50_000), "too complex"},
		"a sum over lines":          {"c.hcl", "watch = (1" + strings.Repeat("\n+1", 50_000) + ")", "too complex"},
		"a chain of conditions":     {"c.hcl", "watch = " + strings.Repeat("a?b:", 50_000), "too complex"},
		"a chain of indexes":        {"c.hcl", "watch = a" + strings.Repeat("[0]", 50_000), "too complex"},
		"templates in templates":    {"c.hcl", `watch = ` + strings.Repeat(`"${`, 50_000), "too complex"},
		"template directives":       {"c.hcl", `watch = "` + strings.Repeat(`%{ if a }`, 20_000) + `"`, "too complex"},
		"JSON arrays in arrays":     {"c.json", strings.Repeat("[", 1_000_000), "too complex"},
		"JSON objects in objects":   {"c.json", strings.Repeat(`{"a":`, 200_000), "too complex"},
		"a deep expression in JSON": {"c.json", `{"watch": "${` + strings.Repeat("(", 50_000) + `"}`, "too complex"},
		"a chain in JSON":           {"c.json", `{"watch": "${1` + strings.Repeat("+1", 50_000) + `}"}`, "too complex"},
		"a condition in JSON":       {"c.json", `{"rule": {"a": {"action": "deny", "when": "` + strings.Repeat("!", 50_000) + `"}}}`, "too complex"},
		"a file that is too large":  {"c.hcl", strings.Repeat("#\n", config.MaxFileBytes), "too large"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, diags := config.Parse(test.path, []byte(test.src), fakeEnv(nil)); !strings.Contains(diags.Error(), test.want) {
				t.Errorf("want %q in: %s", test.want, diags.Error())
			}
		})
	}
}

func TestLargeButPlainFilesAreTaken(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "mcp_server \"s%d\" {\n  url = \"https://example.com/%d\"\n  headers = { A = \"b\", C = upper(\"d\") }\n}\n", i, i)
	}
	if cfg := mustParse(t, "config.hcl", b.String(), fakeEnv(nil)); len(cfg.MCPServers) != 3000 {
		t.Errorf("%d servers", len(cfg.MCPServers))
	}
}

func TestFilesOfConfD(t *testing.T) {
	many := map[string][]byte{"config.hcl": nil}
	for i := range 201 {
		many[fmt.Sprintf("conf.d/%03d.hcl", i)] = nil
	}
	broken := archiveEnv(map[string][]byte{"config.hcl": nil})
	broken.ReadDir = func(dir string) ([]string, error) {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrPermission}
	}
	tests := map[string]struct {
		env  *config.Environment
		want string
	}{
		"too many are refused":                       {archiveEnv(many), "Too many files in /etc/hermesd/conf.d; it has 201 and the limit is 200; merge some."},
		"a folder that cannot be listed is an error": {broken, "Cannot list /etc/hermesd/conf.d; /etc/hermesd/conf.d: permission denied."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, diags := config.Load("/etc/hermesd/config.hcl", test.env)
			if diags.Error() != test.want {
				t.Errorf("got  %s\nwant %s", diags.Error(), test.want)
			}
		})
	}
}

func TestFormat(t *testing.T) {
	tests := map[string]struct{ path, src, want string }{
		"native syntax is laid out": {"c.hcl", "log {\nlevel=\"info\"\n   format   = \"json\"\n}\n", "log {\n  level  = \"info\"\n  format = \"json\"\n}\n"},
		"comments stay":             {"c.hcl", "// why\n\n#a = 1\n", "// why\n\n#a = 1\n"},
		"JSON syntax is indented":   {"c.hcl.json", `{"log":{"level":"info"}}`, "{\n  \"log\": {\n    \"level\": \"info\"\n  }\n}\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, diags := config.Format(test.path, []byte(test.src))
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got, diags := config.Format("c.hcl", []byte("log {")); !diags.HasErrors() || got != nil {
		t.Errorf("a file that does not parse gave %q and %v", got, diags)
	}
}

func TestDefaultPath(t *testing.T) {
	tests := map[string]struct {
		vars map[string]string
		want string
	}{
		"a service's folder":  {map[string]string{"CONFIGURATION_DIRECTORY": "/etc/hermesd"}, "/etc/hermesd/config.hcl"},
		"a person's folder":   {map[string]string{"XDG_CONFIG_HOME": "/home/ada/cfg"}, "/home/ada/cfg/hermesd/config.hcl"},
		"below the home":      {nil, "/home/ada/.config/hermesd/config.hcl"},
		"nothing known":       {map[string]string{"HOME": ""}, "/etc/hermesd/config.hcl"},
		"relative is nothing": {map[string]string{"XDG_CONFIG_HOME": "cfg"}, "/home/ada/.config/hermesd/config.hcl"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := config.DefaultPath(fakeEnv(test.vars)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAServiceIsWhatSystemdsSystemManagerStarts(t *testing.T) {
	tests := map[string]struct {
		invocation, session bool
		want                bool
	}{
		"a person's shell":          {false, true, false},
		"a person's service":        {true, true, false},
		"a system service":          {true, false, true},
		"a shell without a session": {false, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for variable, set := range map[string]bool{"INVOCATION_ID": test.invocation, "XDG_RUNTIME_DIR": test.session} {
				t.Setenv(variable, "/x") // restores it afterwards
				if !set {
					if err := os.Unsetenv(variable); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := config.ProcessEnvironment().Service; got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
