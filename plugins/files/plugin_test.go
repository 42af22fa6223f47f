package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/pluginsdk"
)

// TestMain lets this test binary be the plugin, as a person would start it by hand.
func TestMain(m *testing.M) {
	if os.Getenv("FILES_TEST_PLUGIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// run starts the plugin by hand.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), "FILES_TEST_PLUGIN=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestThePluginDescribesItsToolsWithoutAConfiguration(t *testing.T) {
	out, _, code := run(t, "describe")
	if code != 0 {
		t.Fatalf("exit = %d", code)
	}
	var d struct {
		ConfigSchema json.RawMessage `json:"config_schema"`
		Tools        []struct {
			Name, Toolset, Coldness string
			Annotations             map[string]bool
		}
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]bool{}
	for _, tool := range d.Tools {
		if tool.Toolset != "files" || tool.Coldness != "core" {
			t.Errorf("%s: toolset %q, coldness %q", tool.Name, tool.Toolset, tool.Coldness)
		}
		got[tool.Name] = tool.Annotations
	}
	reading := map[string]bool{"read_only": true, "idempotent": true, "parallel_safe": true, "open_world": false}
	want := map[string]map[string]bool{
		"files_read": reading, "files_list": reading, "files_search": reading,
		"files_write": {"destructive": true, "idempotent": true, "open_world": false},
		"files_patch": {"destructive": true, "open_world": false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !bytes.Contains(d.ConfigSchema, []byte("max_read_bytes")) {
		t.Errorf("config schema = %s", d.ConfigSchema)
	}
}

func TestEveryToolWorksByHand(t *testing.T) {
	dir := t.TempDir()
	config, err := json.Marshal(map[string]any{"root": dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ tool, args, want string }{
		{"files_write", `{"path":"a/b.txt","content":"one\ntwo\n"}`, `{"path":"a/b.txt","bytes":8,"created":true}`},
		{"files_patch", `{"path":"a/b.txt","edits":[{"old":"two","new":"2 < 3"}]}`, `{"path":"a/b.txt","replacements":1,"lines":[2],"bytes":10}`},
		{"files_read", `{"path":"a/b.txt"}`, "one\n2 < 3"},
		{"files_search", `{"pattern":"2 <"}`, `{"matches":[{"path":"a/b.txt","line":2,"text":"2 < 3"}],"files":1}`},
		{"files_list", `{"glob":"*.none"}`, `{"entries":[]}`},
	} {
		out, errs, code := run(t, "invoke", "--config", string(config), step.tool, step.args)
		if code != 0 || strings.TrimSpace(out) != step.want {
			t.Errorf("%s = %q, %q (exit %d), want %q", step.tool, out, errs, code, step.want)
		}
	}
	if got := readFile(t, dir, "a/b.txt"); got != "one\n2 < 3\n" {
		t.Errorf("content = %q", got)
	}
	_, errs, code := run(t, "invoke", "--config", string(config), "files_read", `{"path":"../x"}`)
	if code != 1 || !strings.Contains(errs, "invalid_arguments") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

func TestAWrongConfigurationNamesItsKey(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		in   settings
		want []string // paths
	}{
		"nothing":              {settings{}, []string{"/root"}},
		"both forms":           {settings{Root: dir, Roots: map[string]string{"a": dir}}, []string{"/roots"}},
		"a missing directory":  {settings{Root: filepath.Join(dir, "no")}, []string{"/root"}},
		"a file":               {settings{Root: file}, []string{"/root"}},
		"two faulty roots":     {settings{Roots: map[string]string{"a": file, "b": dir, "c": file}}, []string{"/roots/a", "/roots/c"}},
		"a name with a slash":  {settings{Roots: map[string]string{"a/b": dir}}, []string{"/roots/a~1b"}},
		"a name that is a dot": {settings{Roots: map[string]string{"..": dir}}, []string{"/roots/.."}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &files{}
			err := f.configure(t.Context(), c.in)
			errs := []error{err}
			if joined, ok := err.(interface{ Unwrap() []error }); ok {
				errs = joined.Unwrap()
			}
			var got []string
			for _, e := range errs {
				var ce *pluginsdk.ConfigError
				if !errors.As(e, &ce) {
					t.Fatalf("error = %v", e)
				}
				got = append(got, ce.Path)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
