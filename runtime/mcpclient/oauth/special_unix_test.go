//go:build unix

package oauth_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/mcpclient/oauth"
)

func TestAPipeInThePlaceOfCredentialsHoldsNobody(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := oauth.New(&oauth.Options{Name: "notes", Server: "https://example.com/mcp", File: filepath.Join(dir, "kept"), CredentialsFile: pipe})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := a.Token(t.Context())
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "is a named pipe, no file with a token") {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("reading waits for the other end of a pipe")
	}
}
