package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets this test binary be the plugin, as a person would start it by hand.
func TestMain(m *testing.M) {
	if os.Getenv("HELLO_TEST_PLUGIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func run(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), "HELLO_TEST_PLUGIN=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && errs.Len() == 0 {
		t.Fatal(err)
	}
	return out.String(), errs.String()
}

func TestItGreetsInFourLanguages(t *testing.T) {
	for args, want := range map[string]string{
		`{"name":"Ada"}`:                 `{"greeting":"Hello, Ada!"}`,
		`{"name":"Ada","language":"de"}`: `{"greeting":"Hallo, Ada!"}`,
		`{"name":"Ada","language":"fr"}`: `{"greeting":"Bonjour, Ada!"}`,
		`{"name":"Ada","language":"es"}`: `{"greeting":"Hola, Ada!"}`,
	} {
		if out, errs := run(t, "invoke", "greet", args); strings.TrimSpace(out) != want {
			t.Errorf("%s = %q, %q", args, out, errs)
		}
	}
	if _, errs := run(t, "invoke", "greet", `{"name":"Ada","language":"la"}`); !strings.Contains(errs, "invalid_arguments: /language") {
		t.Errorf("Latin: %q", errs)
	}
}

func TestItDescribesItself(t *testing.T) {
	out, _ := run(t, "describe")
	var d struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal([]byte(out), &d); err != nil || len(d.Tools) != 1 || d.Tools[0].Name != "greet" {
		t.Errorf("description = %s, %v", out, err)
	}
}

// A plugin must stay light: an operator may run dozens.
func TestTheStrippedProgramIsSmallAndItsDependenciesAreFew(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	program := filepath.Join(t.TempDir(), "hello")
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() >= 14_000_000 {
		t.Errorf("the program has %d bytes", info.Size())
	}
	deps, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, heavy := range []string{"blevesearch/", "hashicorp/hcl", "modelcontextprotocol/", "modernc.org/", "zclconf/", "hermesd/hermesd/runtime", "hermesd/hermesd/search"} {
		if strings.Contains(string(deps), heavy) {
			t.Errorf("it depends on %s", heavy)
		}
	}
}
