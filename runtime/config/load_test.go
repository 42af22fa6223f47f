package config_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/config"
)

func TestTextThatWouldExhaustTheParserIsRefused(t *testing.T) {
	tests := map[string]struct{ path, src, want string }{
		"brackets in brackets":      {"c.hcl", "watch = " + strings.Repeat("(", 20_000), "too complex"},
		"blocks in blocks":          {"c.hcl", strings.Repeat("a {\n", 101), "too complex"},
		"a chain of negations":      {"c.hcl", "watch = " + strings.Repeat("!", 20_000), "too complex"},
		"a chain of sums":           {"c.hcl", "watch = 1" + strings.Repeat("+1", 20_000), "too complex"},
		"a sum over lines":          {"c.hcl", "watch = (1" + strings.Repeat("\n+1", 20_000) + ")", "too complex"},
		"a chain of conditions":     {"c.hcl", "watch = " + strings.Repeat("a?b:", 20_000), "too complex"},
		"a chain of indexes":        {"c.hcl", "watch = a" + strings.Repeat("[0]", 20_000), "too complex"},
		"templates in templates":    {"c.hcl", `watch = ` + strings.Repeat(`"${`, 20_000), "too complex"},
		"template directives":       {"c.hcl", `watch = "` + strings.Repeat(`%{ if a }`, 20_000) + `"`, "too complex"},
		"JSON arrays in arrays":     {"c.json", strings.Repeat("[", 20_000), "too complex"},
		"JSON objects in objects":   {"c.json", strings.Repeat(`{"a":`, 20_000), "too complex"},
		"a deep expression in JSON": {"c.json", `{"watch": "${` + strings.Repeat("(", 20_000) + `"}`, "too complex"},
		"a chain in JSON":           {"c.json", `{"watch": "${1` + strings.Repeat("+1", 20_000) + `}"}`, "too complex"},
		"a condition in JSON":       {"c.json", `{"rule": {"a": {"action": "deny", "when": "` + strings.Repeat("!", 20_000) + `"}}}`, "too complex"},
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
	for i := range 1000 {
		fmt.Fprintf(&b, "mcp_server \"s%d\" {\n  url = \"https://example.com/%d\"\n  headers = { A = \"b\", C = upper(\"d\") }\n}\n", i, i)
	}
	if cfg := mustParse(t, "config.hcl", b.String(), fakeEnv(nil)); len(cfg.MCPServers) != 1000 {
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

func TestLoadReadsTheFolderBesideTheFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "conf.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"config.hcl": "plugin \"a\" {\n  path = \"bin/a\"\n  args = [\"-v\"]\n}\n", "conf.d/20.hcl": "plugin \"c\" {\n  command = [\"node\", \"c.js\"]\n}\n",
		"conf.d/10.hcl.json": `{"plugin": {"b": {"path": "/bin/b"}}}`, "conf.d/README": "no configuration",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, diags := config.Load(filepath.Join(dir, "config.hcl"), fakeEnv(nil))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var got [][]string
	for _, p := range cfg.Plugins {
		got = append(got, p.Argv())
	}
	want := [][]string{{filepath.Join(dir, "bin/a"), "-v"}, {"/bin/b"}, {"node", "c.js"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(cfg.Files) != 3 || cfg.Files[1] != filepath.Join(dir, "conf.d/10.hcl.json") {
		t.Errorf("files are %v", cfg.Files)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.hcl"), bytes.Repeat([]byte("#\n"), config.MaxFileBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, diags := config.Load(filepath.Join(dir, "config.hcl"), fakeEnv(nil)); !strings.Contains(diags.Error(), "larger than 1MiB") {
		t.Errorf("a file that is too large gave: %v", diags)
	}
}
