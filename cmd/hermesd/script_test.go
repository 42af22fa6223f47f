package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hermesd/hermesd/internal/procgroup"
)

func TestMain(m *testing.M) {
	procgroup.ShimMain()
	testscript.Main(m, map[string]func(){
		"hermesd": func() { os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// The command line, as people and programs use it: testdata/script/*.txtar.
func TestScripts(t *testing.T) {
	plugins := t.TempDir()
	build := exec.Command("go", "build", "-o", plugins+string(filepath.Separator), "./plugins/files", "./examples/plugins/hello")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PLUGINS", plugins)
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
	})
}
