package audit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hermesd/hermesd/runtime/audit"
)

func TestAKeyIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.key")
	first, err := audit.LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := audit.LoadKey(path)
	if err != nil || !first.Equal(second) {
		t.Error("another key", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.LoadKey(path); err == nil {
		t.Error("a damaged key was replaced")
	}
}
