package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/internal/testbin"
)

// hostEnv makes this test binary run a program under the shim and print what is above it.
const hostEnv = "HERMESD_SHIM_TEST_HOST"

func TestMain(m *testing.M) {
	procgroup.ShimMain()
	if os.Getenv(hostEnv) != "" {
		host()
	}
	os.Exit(m.Run())
}

func host() {
	p, err := procgroup.Start(&procgroup.Command{
		Path: "/bin/sh", Args: []string{"-c", "cat /proc/$PPID/comm; exit 5"}, Env: os.Environ(), Contain: true,
	})
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.ReadFrom(p.Stdout()); err != nil {
		panic(err)
	}
	os.Exit(p.ExitState().Code)
}

func TestByHandItSaysWhatItIs(t *testing.T) {
	out, err := exec.Command(testbin.Build(t, "cmd/hermesd-shim")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "started by hermesd only") {
		t.Errorf("%v, %s", err, out)
	}
}

func TestTheShimBesideABinaryIsUsedIfItIsOfTheSameVersion(t *testing.T) {
	for name, tt := range map[string]struct{ shim, above string }{
		"the small binary":    {testbin.Build(t, "cmd/hermesd-shim"), "hermesd-shim"},
		"one that ends early": {"/bin/false", "exe"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for from, to := range map[string]string{os.Args[0]: "hermesd", tt.shim: "hermesd-shim"} {
				content, err := os.ReadFile(from)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, to), content, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(filepath.Join(dir, "hermesd"))
			cmd.Env = append(os.Environ(), hostEnv+"=1")
			out, err := cmd.CombinedOutput()
			if got := strings.TrimSpace(string(out)); got != tt.above || cmd.ProcessState.ExitCode() != 5 {
				t.Errorf("the program ran under %q and ended with %v", got, err)
			}
		})
	}
}
