package config_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/config"
)

const examplePath = "../../config.hcl.example"

func readExample(t *testing.T) string {
	t.Helper()
	src, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

// switchedOn removes the # of everything that the example has switched off.
func switchedOn(src string) string {
	return regexp.MustCompile(`(?m)^(\s*)#`).ReplaceAllString(src, "$1")
}

func mustParse(t *testing.T, path, src string, env *config.Environment) *config.Config {
	t.Helper()
	cfg, diags := config.Parse(path, []byte(src), env)
	if len(diags.Items()) > 0 {
		var b strings.Builder
		if _, err := diags.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("diagnostics:\n%s", b.String())
	}
	return cfg
}

func TestTheExampleLoadsAsItIs(t *testing.T) {
	cfg, diags := config.Load(examplePath, fakeEnv(nil))
	if len(diags.Items()) > 0 {
		t.Fatal(diags)
	}
	if cfg.Tools.ToolSearch.Enabled != "on" {
		t.Errorf("tool_search is %q, want on", cfg.Tools.ToolSearch.Enabled)
	}
	var names []string
	for _, p := range cfg.Plugins {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"files", "hello", "weather"}, names); diff != "" {
		t.Errorf("plugins (-want +got):\n%s", diff)
	}
}

func TestTheExampleLoadsWithEverythingSwitchedOn(t *testing.T) {
	cfg := mustParse(t, examplePath, switchedOn(readExample(t)), fakeEnv(map[string]string{
		"NOTES_TOKEN": "s-notes", "GITHUB_TOKEN": "s-github", "TRACKER_TOKEN": "s-tracker", "PAGES_CLIENT_SECRET": "s-pages", "HOOK_SECRET": "s-hook",
		"APPROVALS_SECRET": "s-approvals", "EMBEDDINGS_KEY": "s-embeddings", "LEDGER_KEY": newKey(t), "BUILD_TOKEN": "s-build",
		"WIKI_CLIENT_SECRET": "s-wiki", "IDP_CLIENT_SECRET": "s-idp", "HANDBOOK_ID_TOKEN": "s-handbook",
	}))
	if got := cfg.MCPServers[1].Headers["Authorization"]; got != "Bearer s-tracker" {
		t.Errorf("header is %q", got)
	}
	if len(cfg.Rules) != 3 || len(cfg.Hooks) != 3 || len(cfg.Agents) != 2 {
		t.Errorf("%d rules, %d hooks, %d agents", len(cfg.Rules), len(cfg.Hooks), len(cfg.Agents))
	}
}

func TestTheExampleHasEveryKey(t *testing.T) {
	src := switchedOn(readExample(t))
	for _, key := range config.Keys() {
		if !regexp.MustCompile(`(?m)^\s*` + key + `\b`).MatchString(src) {
			t.Errorf("config.hcl.example does not show %q", key)
		}
	}
}

func TestTheExampleIsFormatted(t *testing.T) {
	for _, src := range []string{readExample(t), switchedOn(readExample(t))} {
		formatted, diags := config.Format("config.hcl", []byte(src))
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if !bytes.Equal(formatted, []byte(src)) {
			t.Errorf("format (-example +formatted):\n%s", cmp.Diff(strings.Split(src, "\n"), strings.Split(string(formatted), "\n")))
		}
	}
}

func fakeEnv(vars map[string]string) *config.Environment {
	all := map[string]string{"HOME": "/home/ada"}
	for name, value := range vars {
		all[name] = value
	}
	return &config.Environment{
		Lookup: func(name string) (string, bool) { value, ok := all[name]; return value, ok },
	}
}
