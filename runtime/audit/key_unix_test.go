//go:build unix

package audit_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/audit"
)

func TestAPipeInThePlaceOfTheKeyHoldsNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.key")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := audit.LoadKey(path)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "no ordinary file") {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("reading waits for the other end of a pipe")
	}
}
