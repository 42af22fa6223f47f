// Package testbin builds programs for tests, once for all tests that need them. Its subfolder misbehave is a plugin that
// breaks every rule on request.
package testbin

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"
)

// Module is this module's path.
const Module = "github.com/hermesd/hermesd"

var (
	mu    sync.Mutex
	built = map[string]string{}
)

// Build returns the path of the binary of a main package, given by its path below the module ("internal/testbin/misbehave").
// It is built at most once in a process, and linked again only when its code changed since an earlier run. Environment
// settings such as "GOARCH=arm64" are for the go command.
func Build(t testing.TB, pkg string, env ...string) string {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	key := fmt.Sprint(pkg, env)
	if file := built[key]; file != "" {
		return file
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("hermesd-testbin-%d", os.Getuid()), fmt.Sprint(env), filepath.FromSlash(path.Dir(pkg)))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, path.Base(pkg))
	unlock, err := lock(file + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	cmd := exec.Command("go", "build", "-o", file, Module+"/"+pkg)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	built[key] = file
	return file
}
