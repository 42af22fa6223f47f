// Package testnode brings the npm programs that tests run against hermesd: real MCP servers, the MCP Inspector and the
// conformance suite, on Node 22. They are installed once, pinned by package-lock.json, into a folder that git ignores.
package testnode

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/testenv"
)

// installTime bounds one installation.
const installTime = 5 * time.Minute

var install = sync.OnceValues(installed)

// Modules returns the path of a node_modules folder that holds everything in package.json. HERMESD_NODE_MODULES names one
// that exists; otherwise the packages are installed below .cache at the top of the repository. The test is skipped, with
// the reason, where there is no npm or no network, but fails if [testenv.RequireEnv] has npm.
func Modules(t testing.TB) string {
	t.Helper()
	dir, err := install()
	if errors.Is(err, errSkip) {
		testenv.Missing(t, "npm", err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Node returns the path of the node 22 binary.
func Node(t testing.TB) string { return Bin(t, "node") }

// Bin returns the path of a command that one of the packages brings. Such a command is a script: run it with [Env], so
// that it finds node 22.
func Bin(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(Modules(t), ".bin", name)
}

// Env is the environment for the packages' commands: this process's, with node 22 first in PATH.
func Env(t testing.TB) []string {
	t.Helper()
	return append(os.Environ(), "PATH="+filepath.Join(Modules(t), ".bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
}

var errSkip = errors.New("skipped")

func installed() (string, error) {
	if dir := os.Getenv("HERMESD_NODE_MODULES"); dir != "" {
		return filepath.Abs(dir)
	}
	_, self, _, _ := runtime.Caller(0)
	source := filepath.Dir(self)
	lock, err := os.ReadFile(filepath.Join(source, "package-lock.json"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(source, "..", "..", ".cache", "npm-"+hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	modules, done := filepath.Join(dir, "node_modules"), filepath.Join(dir, "done")
	if _, err := os.Stat(done); err == nil {
		return modules, nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("%w: npm is not installed, so programs from npm cannot be tried", errSkip)
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		raw, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		if offline(out) {
			return "", fmt.Errorf("%w: no network: %s", errSkip, bytes.TrimSpace(out))
		}
		return "", fmt.Errorf("npm install: %w\n%s", err, out)
	}
	return modules, os.WriteFile(done, nil, 0o644)
}

// offline reports whether npm's output says that no registry could be reached at all.
func offline(out []byte) bool {
	for _, sign := range []string{"ENOTFOUND", "EAI_AGAIN", "ENETUNREACH", "ECONNREFUSED", "ETIMEDOUT"} {
		if bytes.Contains(out, []byte(sign)) {
			return true
		}
	}
	return false
}

// lockFile keeps the test binaries of several packages from installing at the same time.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil
}
