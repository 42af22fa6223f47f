package config_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hermesd/hermesd/runtime/config"
)

var sameMeaning = cmp.Options{
	cmpopts.IgnoreUnexported(config.Config{}),
	cmpopts.IgnoreFields(config.Config{}, "Files"),
	cmpopts.IgnoreTypes(config.Position{}),
	cmpopts.IgnoreFields(config.Rule{}, "When"), // Rule.Text is its source
}

func everything(t *testing.T) (*config.Config, *config.Environment) {
	t.Helper()
	vars := map[string]string{}
	for _, name := range []string{"NOTES_TOKEN", "GITHUB_TOKEN", "PAGES_CLIENT_SECRET", "HOOK_SECRET", "APPROVALS_SECRET", "EMBEDDINGS_KEY",
		"BUILD_TOKEN", "WIKI_CLIENT_SECRET", "IDP_CLIENT_SECRET", "HANDBOOK_ID_TOKEN"} {
		vars[name] = "secret-" + name
	}
	vars["LEDGER_KEY"] = newKey(t)
	src := strings.ReplaceAll(switchedOn(readExample(t)), `Authorization = "Bearer ${secret("env:TRACKER_TOKEN")}"`, `X-Note = "${"$"}{no template}"`)
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
	if len(cfg.Secrets) != 11 {
		t.Errorf("%d secrets, want 11", len(cfg.Secrets))
	}
	for _, s := range cfg.Secrets {
		if strings.Contains(b.String(), s.Value) {
			t.Errorf("%s is shown", s.Ref)
		}
	}
}

func TestProvidersSecretsAreHiddenHoweverTheyAreWritten(t *testing.T) {
	cfg := mustParse(t, "/etc/hermesd/config.hcl", `
plugin "notes" {
  path     = "/bin/notes"
  env      = { NOTES_API_KEY = "literal-key", LANG = "literal-lang" }
  pass_env = ["GITHUB_TOKEN", "EDITOR"]
}
mcp_server "pages" {
  url     = "https://example.com/mcp"
  headers = { Authorization = "Bearer literal-token", Accept = "literal-type" }
}
`, fakeEnv(map[string]string{"GITHUB_TOKEN": "passed-token", "EDITOR": "passed-editor"}))
	const text = "literal-key literal-lang passed-token passed-editor Bearer literal-token literal-type"
	if got, want := cfg.Mask(text), "*** literal-lang *** passed-editor Bearer *** literal-type"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var b bytes.Buffer
	if err := errors.Join(cfg.Show(&b), cfg.ShowJSON(&b)); err != nil {
		t.Fatal(err)
	}
	if shown := b.String(); strings.Contains(shown, "literal-key") || strings.Contains(shown, "literal-token") || !strings.Contains(shown, "literal-lang") {
		t.Error(shown)
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

func TestTheMarkerOfAHeredocIsNoSecret(t *testing.T) {
	for name, begin := range map[string]string{"plain": "<<TEXT", "indented": "<<-TEXT"} {
		t.Run(name, func(t *testing.T) {
			src := "embeddings {\n  url     = \"https://example.com\"\n  model   = \"m\"\n  api_key = " + begin + "\nhunter22\nTEXT\n}\n"
			cfg, diags := config.Parse("config.hcl", []byte(src), fakeEnv(nil))
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			if got := cfg.Mask("TEXT with hunter22"); got != "TEXT with ***" {
				t.Errorf("%q", got)
			}
		})
	}
}
