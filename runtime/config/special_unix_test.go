//go:build unix

package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
		"the configuration is a pipe":      {pipe, "", "pipe is a named pipe, no regular file"},
		"the configuration is a device":    {"/dev/null", "", "/dev/null is a device, no regular file"},
		"the configuration is a directory": {dir, "", "is a folder, no regular file"},
		"file() of a pipe":                 {"", `state_dir = file("pipe")`, "pipe is a named pipe, no regular file"},
		"secret() of a pipe":               {"", `approvals { secret = secret("file:pipe") }`, "pipe is a named pipe, no regular file"},
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

// What a path leads to may change between two looks at it.
func TestAFileThatBecomesAPipeHoldsNobody(t *testing.T) {
	dir := t.TempDir()
	pipe, file, path := filepath.Join(dir, "pipe"), filepath.Join(dir, "file"), filepath.Join(dir, "config.hcl")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(file, path)); err != nil {
		t.Fatal(err)
	}
	stop, swapped, read := make(chan struct{}), make(chan error, 1), make(chan struct{})
	go func() {
		link := filepath.Join(dir, "link")
		for i := 0; ; i++ {
			select {
			case <-stop:
				swapped <- nil
				return
			default:
			}
			if err := errors.Join(os.Symlink([]string{pipe, file}[i%2], link), os.Rename(link, path)); err != nil {
				swapped <- err
				return
			}
		}
	}()
	go func() {
		defer close(read)
		for begun := time.Now(); time.Since(begun) < time.Second/2; {
			config.Load(path, fakeEnv(nil)) // its result is either
		}
	}()
	select {
	case <-read:
	case <-time.After(10 * time.Second):
		t.Error("opening a pipe waits for its other end")
	}
	close(stop)
	if err := <-swapped; err != nil {
		t.Fatal(err)
	}
}
