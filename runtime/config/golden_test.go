package config_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/hermesd/hermesd/runtime/config"
)

// Each archive of testdata holds the files of one configuration under /etc/hermesd, the environment (NAME=value lines in
// "env", "service" for a system service), and what is said about it: "diagnostics", and "show" for those that load.
func TestDiagnosticsOfTestdata(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want, rest := map[string]string{}, archive.Files[:0:0]
			files := map[string][]byte{}
			for _, f := range archive.Files {
				switch f.Name {
				case "diagnostics", "show":
					want[f.Name] = string(f.Data)
					continue
				}
				rest = append(rest, f)
				files[f.Name] = f.Data
			}
			got := describe(t, files)
			if *config.Update {
				archive.Files = rest
				for _, part := range []string{"diagnostics", "show"} {
					if got[part] != "" {
						archive.Files = append(archive.Files, txtar.File{Name: part, Data: []byte(got[part])})
					}
				}
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got), rewrite with -update:\n%s", diff)
			}
		})
	}
}

func describe(t *testing.T, files map[string][]byte) map[string]string {
	main := "config.hcl"
	if files[main] == nil {
		main = "config.hcl.json"
	}
	cfg, diags := config.Load(path.Join("/etc/hermesd", main), archiveEnv(files))
	got := map[string]string{}
	var b bytes.Buffer
	if _, err := diags.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 0 {
		got["diagnostics"] = b.String()
	}
	if diags.HasErrors() {
		return got
	}
	b.Reset()
	if err := cfg.Show(&b); err != nil {
		t.Fatal(err)
	}
	got["show"] = b.String()
	return got
}

func archiveEnv(files map[string][]byte) *config.Environment {
	vars := map[string]string{}
	for line := range strings.Lines(string(files["env"])) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		vars[name] = value
	}
	env := fakeEnv(vars)
	_, env.Service = files["service"]
	env.ReadFile = func(name string) ([]byte, error) {
		if content, ok := files[strings.TrimPrefix(name, "/etc/hermesd/")]; ok {
			return content, nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	env.ReadDir = func(dir string) ([]string, error) {
		var names []string
		for name := range files {
			if path.Join("/etc/hermesd", path.Dir(name)) == dir {
				names = append(names, path.Base(name))
			}
		}
		return names, nil
	}
	return env
}
