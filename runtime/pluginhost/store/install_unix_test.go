//go:build unix

package store_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/pluginhost/store"
)

func TestAPipeIsNotInstalled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plugin")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := store.OpenInstalled(t.TempDir()).Install(path, store.InstallOptions{})
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "named pipe") || !strings.Contains(err.Error(), "bundle") {
			t.Errorf("error %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for somebody to write into the pipe")
	}
}
