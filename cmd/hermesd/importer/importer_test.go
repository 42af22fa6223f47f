package importer_test

import (
	stdcmp "cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/hermesd/hermesd/cmd/hermesd/importer"
	"github.com/hermesd/hermesd/runtime/config"
)

var update = flag.Bool("update", false, "write what the importer makes into testdata")

// load reads a result as the daemon would, with every variable that it wants set.
func load(t testing.TB, hcl []byte, r *importer.Result) *config.Config {
	t.Helper()
	values := map[string]string{}
	for _, s := range r.Variables {
		values[s.Env] = s.Value
		if s.Value == "" {
			values[s.Env] = "http://filled-in-" + s.Env
		}
	}
	values["HOME"] = "/home/ada"
	cfg, diags := config.Parse("/etc/hermesd/config.hcl", hcl, &config.Environment{Lookup: func(name string) (string, bool) {
		if v, ok := values[name]; ok {
			return v, true
		}
		return "http://from-" + name, true
	}})
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags.Err(), hcl)
	}
	return cfg
}

// loads is why a block of a result cannot be loaded, whatever the variables that the files did not have may be.
func loads(r *importer.Result) (reason string) {
	values := map[string]string{}
	for _, v := range r.Variables {
		values[v.Env] = v.Value
	}
	for i := range r.Servers {
		one := importer.Result{Servers: r.Servers[i : i+1]}
		for _, other := range []string{"http://later.example", "1", "word"} {
			env := &config.Environment{Lookup: func(name string) (string, bool) { return stdcmp.Or(values[name], other), true }}
			_, diags := config.Parse("/etc/c.hcl", append([]byte("state_dir = \"/x\"\n"), one.HCL()...), env)
			if reason = diags.Error(); !diags.HasErrors() {
				reason = ""
				break
			}
		}
		if reason != "" {
			return reason
		}
	}
	return ""
}

// Each archive holds one file as a program keeps it, with its path as its name, and what becomes of it. Its comment says
// what it guards.
func TestFilesOfOtherPrograms(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			var files []importer.File
			for _, f := range a.Files {
				if strings.HasPrefix(f.Name, "want/") {
					want[f.Name] = string(f.Data)
					continue
				}
				files = append(files, importer.File{Path: "/home/ada/" + f.Name, Data: f.Data})
			}
			r, err := importer.Read(files, &importer.Options{Home: "/home/ada"})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{"want/hcl": string(r.HCL()), "want/notes": notes(r), "want/env": string(r.EnvFile())}
			load(t, r.HCL(), r)
			for _, s := range r.Variables {
				if s.Value != "" && strings.Contains(got["want/hcl"]+got["want/notes"], s.Value) {
					t.Errorf("the value of %s stands in the configuration or the notes", s.Env)
				}
			}
			if *update {
				write(t, path, a, got)
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got), rewrite with -update:\n%s", diff)
			}
		})
	}
}

func notes(r *importer.Result) string {
	var b strings.Builder
	for _, n := range r.Notes {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}

func write(t *testing.T, path string, a *txtar.Archive, got map[string]string) {
	t.Helper()
	kept := a.Files[:0]
	for _, f := range a.Files {
		if !strings.HasPrefix(f.Name, "want/") {
			kept = append(kept, f)
		}
	}
	a.Files = kept
	for _, name := range []string{"want/hcl", "want/env", "want/notes"} {
		a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(got[name])})
	}
	if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What the daemon starts must be what the other program started.
func TestWhatIsLoadedIsWhatTheFileSaid(t *testing.T) {
	const file = `{"mcpServers": {
		"notes": {"command": "npx", "args": ["-y", "srv", "--api-key", "k-123456789", "--header", "Authorization: Bearer t0k3n", "a ${b} \"c\" %{d} \\ \n"],
			"env": {"NOTES_TOKEN": "s3cret-value", "LEVEL": "debug", "odd-name": "x"}},
		"web": {"url": "https://example.com/mcp?api_key=sesame&v=2", "headers": {"Authorization": "Bearer abc", "X-Team": "blue"}}
	}}`
	r, err := importer.Read([]importer.File{{Path: "/home/ada/.mcp.json", Data: []byte(file)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := load(t, r.HCL(), r)
	notes, web := cfg.MCPServers[0], cfg.MCPServers[1]
	wantCommand := []string{"npx", "-y", "srv", "--api-key", "k-123456789", "--header", "Authorization: Bearer t0k3n", "a http://filled-in-b \"c\" %{d} \\ \n"}
	if diff := cmp.Diff(wantCommand, notes.Command); diff != "" {
		t.Errorf("command: %s", diff)
	}
	if diff := cmp.Diff(map[string]string{"NOTES_TOKEN": "s3cret-value", "LEVEL": "debug"}, notes.Env); diff != "" {
		t.Errorf("env: %s", diff)
	}
	if web.URL != "https://example.com/mcp?api_key=sesame&v=2" {
		t.Errorf("url: %s", web.URL)
	}
	if diff := cmp.Diff(map[string]string{"Authorization": "Bearer abc", "X-Team": "blue"}, web.Headers); diff != "" {
		t.Errorf("headers: %s", diff)
	}
	for _, secret := range []string{"k-123456789", "t0k3n", "s3cret-value", "sesame", "abc\""} {
		if strings.Contains(string(r.HCL()), secret) {
			t.Errorf("%q stands in the configuration:\n%s", secret, r.HCL())
		}
	}
}

func TestSecretsAreFound(t *testing.T) {
	for name, tt := range map[string]struct {
		env, value string
		secret     bool
	}{
		"a name that says so":             {"GITHUB_TOKEN", "x", true},
		"a camel-case name":               {"openaiApiKey", "x", true},
		"a name with a word in it":        {"KEYBOARD_LAYOUT", "de", false},
		"a path":                          {"DATA_PATH", "/srv/data-1234567890abcdef123", false},
		"a level":                         {"LOG_LEVEL", "debug", false},
		"a token under a harmless name":   {"GH", "ghp_0123456789abcdefghij0123456789abcdef", true},
		"a random text":                   {"THING", "q7Zk2pLx9VbN4mTyR8wEaD3f", true},
		"a package name":                  {"PKG", "modelcontextprotocol-server-everything", false},
		"a database's address":            {"DB", "postgres://app:hunter2@db.example.com/app", true},
		"a database without a password":   {"DB", "postgres://db.example.com/app", false},
		"an address with a token":         {"URL", "https://q7Zk2pLx9VbN4mTyR8wEaD3f@api.example.com", true},
		"an address with a user":          {"REPO", "ssh://git@example.com/app", false},
		"a JWT":                           {"X", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", true},
		"an empty secret is nothing":      {"API_KEY", "", false},
		"a date-like version is none":     {"VERSION", "2026.8.31.1234567890.1234", false},
		"a Slack token in a harmless one": {"TEAM", "xoxb-123456789012-abcdefghijkl", true},
	} {
		t.Run(name, func(t *testing.T) {
			file := fmt.Sprintf(`{"mcpServers":{"a":{"command":"x","env":{%q:%q}}}}`, tt.env, tt.value)
			r, err := importer.Read([]importer.File{{Path: "/m.json", Data: []byte(file)}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if found := len(r.Variables) == 1; found != tt.secret {
				t.Errorf("secret: %t, want %t\n%s", found, tt.secret, r.HCL())
			}
		})
	}
}

func TestFilesThatCannotBeImported(t *testing.T) {
	for name, f := range map[string]importer.File{
		"no JSON":             {Path: "/m.json", Data: []byte(`{"mcpServers":`)},
		"something behind it": {Path: "/m.json", Data: []byte(`{"mcpServers":{}} x`)},
		"no servers":          {Path: "/m.json", Data: []byte(`{"other":{}}`)},
		"an empty list":       {Path: "/m.json", Data: []byte(`{"mcpServers":{}}`)},
		"a list of servers":   {Path: "/m.json", Data: []byte(`{"mcpServers":[]}`)},
		"no YAML":             {Path: "/m.yaml", Data: []byte("mcp_servers: [")},
		"an empty YAML":       {Path: "/m.yaml"},
		"aliases without end": {Path: "/m.yaml", Data: []byte(bomb())},
		"too much":            {Path: "/m.json", Data: make([]byte, importer.MaxFile+1)},
	} {
		if r, err := importer.Read([]importer.File{f}, nil); err == nil {
			t.Errorf("%s was imported:\n%s", name, r.HCL())
		}
	}
}

func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1)
	}
	return b.String() + "mcp_servers:\n  x: {command: y, args: *a8}\n"
}

// Whatever a file holds, what comes out can be loaded, or the file is refused.
func FuzzRead(f *testing.F) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range archives {
		a, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(strings.HasSuffix(a.Files[0].Name, ".yaml"), a.Files[0].Data)
	}
	f.Add(false, []byte(`{/*/ "a" /*/"mcpServers":{"A__b":{"command":"a b","args":["${x}","$${y}","%{z}",1,true],},"é":{"url":"http://a?k=%zz&token=","type":"ws"}}}//`))
	f.Add(false, []byte(`{"mcpServers":{"a":{"command":"sh","args":["-c","A=sk-123456789 x --key \"b c\" ${A}"," ","-e","X=y z"],"env":{"A":"1\u0000\u202e","B":"{\"a\":\"Bearer x123456\"}"},"tools":{"include":{"a":1}},"timeout":1e300},"b":{"url":" HTTPS://u:p@h/s/${X:-a?b&c}?d=%zz#e","headers":{"a b":"c\nd"}}}}`))
	f.Fuzz(func(t *testing.T, isYAML bool, data []byte) {
		path := "/x/m.json"
		if isYAML {
			path = "/x/m.yaml"
		}
		r, err := importer.Read([]importer.File{{Path: path, Data: data}}, &importer.Options{Home: "/home/ada"})
		if err != nil {
			return
		}
		if reason := loads(r); reason != "" {
			t.Errorf("what was written cannot be loaded: %s\n%s", reason, r.HCL())
		}
	})
}
