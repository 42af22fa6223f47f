package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

type pkg struct {
	ImportPath string
	Imports    []string
}

func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports"}, args...)...)
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func below(path string) (string, bool) { return strings.CutPrefix(path, module+"/") }

func TestEveryPackageImportsOnlyWhatItsRowAllows(t *testing.T) {
	for _, p := range list(t, "./...") {
		from, ok := below(p.ImportPath)
		if !ok {
			t.Errorf("%s: no Go file belongs at the top", p.ImportPath)
			continue
		}
		if _, known := allowed(from, ""); !known {
			t.Errorf("%s has no row in the table: say in archtest.go what it may import", from)
		}
		for _, imported := range p.Imports {
			to, ours := below(imported)
			if !ours {
				continue
			}
			if ok, _ := allowed(from, to); !ok {
				t.Errorf("%s must not import %s", from, to)
			}
		}
	}
}

func TestThePackageToolImportsTheStandardLibraryOnly(t *testing.T) {
	for _, imported := range list(t, "./runtime/tool")[0].Imports {
		if strings.Contains(strings.Split(imported, "/")[0], ".") {
			t.Errorf("runtime/tool imports %s", imported)
		}
	}
}

func TestNoGoFileMakesAPackageNamedRuntime(t *testing.T) {
	for _, p := range list(t, "./...") {
		if p.ImportPath == module+"/runtime" {
			t.Error("a package named runtime would shadow the standard one")
		}
	}
}

// An author's plugin must not carry the daemon's weight.
func TestTheSDKIsLight(t *testing.T) {
	heavy := []string{"blevesearch/", "hashicorp/hcl", "modelcontextprotocol/", "modernc.org/", "santhosh-tekuri/", "prometheus/"}
	for _, p := range list(t, "-deps", "./pluginsdk") {
		if i := slices.IndexFunc(heavy, func(h string) bool { return strings.Contains(p.ImportPath, h) }); i >= 0 {
			t.Errorf("pluginsdk depends on %s", p.ImportPath)
		}
	}
}

func TestTheTableItself(t *testing.T) {
	cases := map[string]struct {
		from, to string
		ok       bool
	}{
		"tool imports nothing of ours":                  {"runtime/tool", "runtime/provider", false},
		"a plugin imports the SDK":                      {"plugins/files", "pluginsdk", true},
		"a plugin does not import the runtime":          {"plugins/files", "runtime/tool", false},
		"the pipeline does not know the catalog":        {"runtime/pipeline", "runtime/catalog", false},
		"a front end does not know the daemon":          {"runtime/frontend/mcp", "runtime/daemon", false},
		"only the daemon knows them all":                {"runtime/daemon", "runtime/frontend/mcp", true},
		"the host does not import the author's package": {"runtime/pluginhost", "pluginsdk", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if ok, _ := allowed(c.from, c.to); ok != c.ok {
				t.Errorf("allowed(%s, %s) = %t, want %t", c.from, c.to, ok, c.ok)
			}
		})
	}
}

// A dependency without a reason is not one.
func TestEveryDependencyHasItsLine(t *testing.T) {
	page, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	direct := map[string]bool{}
	for _, p := range list(t, "-test", "./...") {
		for _, imported := range p.Imports {
			direct[imported] = true
		}
	}
	cmd := exec.Command("go", "list", "-m", "-f", "{{if not .Main}}{{.Path}}{{end}}", "all")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for module := range strings.FieldsSeq(string(out)) {
		used := false
		for imported := range direct {
			used = used || imported == module || strings.HasPrefix(imported, module+"/")
		}
		if used && !strings.Contains(string(page), "| "+module+" |") {
			t.Errorf("docs/dependencies.md has no line for %s", module)
		}
	}
}
