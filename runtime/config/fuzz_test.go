package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/hermesd/hermesd/runtime/config"
)

// FuzzParse holds that no text ends the process, that every finding can be printed, and that what loads can be shown and
// loads again.
func FuzzParse(f *testing.F) {
	example, err := os.ReadFile(examplePath)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example, false)
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			f.Add(file.Data, filepath.Ext(file.Name) == ".json")
		}
	}
	env := archiveEnv(map[string][]byte{"env": []byte("TOKEN=fuzz-secret-token\n"), "key.txt": []byte("k")})
	f.Fuzz(func(t *testing.T, src []byte, asJSON bool) {
		path := "/etc/hermesd/config.hcl"
		if asJSON {
			path += ".json"
		}
		cfg, diags := config.Parse(path, src, env)
		var out bytes.Buffer
		if _, err := diags.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		if _, err := diags.JSON(); err != nil {
			t.Fatal(err)
		}
		if diags.HasErrors() {
			return
		}
		if _, diags := config.Format(path, src); diags.HasErrors() {
			t.Fatalf("loads, but cannot be formatted: %v", diags)
		}
		out.Reset()
		if err := cfg.ShowJSON(&out); err != nil {
			t.Fatal(err)
		}
		if _, diags := config.Parse(path+".json", out.Bytes(), env); diags.HasErrors() {
			t.Fatalf("shown as JSON it does not load: %v\n%s", diags, out.Bytes())
		}
		out.Reset()
		if err := cfg.Show(&out); err != nil {
			t.Fatal(err)
		}
		if _, diags := config.Parse("/etc/hermesd/config.hcl", out.Bytes(), env); diags.HasErrors() {
			t.Fatalf("shown it does not load: %v\n%s", diags, out.Bytes())
		}
	})
}
