//go:build unix

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hermesd/hermesd/runtime/config"
)

// A pipe that nobody writes to must not hold the daemon's start, or a reload, for ever.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ file, text, want string }{
		"the configuration is a pipe":      {pipe, "", "pipe is no regular file"},
		"the configuration is a device":    {"/dev/null", "", "/dev/null is no regular file"},
		"the configuration is a directory": {dir, "", "is a directory"},
		"file() of a pipe":                 {"", `state_dir = file("pipe")`, "pipe is no regular file"},
		"secret() of a pipe":               {"", `approvals { secret = secret("file:pipe") }`, "pipe is no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := tt.file
			if path == "" {
				path = filepath.Join(dir, "config.hcl")
				if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, diags := config.Load(path, fakeEnv(nil)); !strings.Contains(diags.Error(), tt.want) {
				t.Errorf("got %v", diags)
			}
		})
	}
}
