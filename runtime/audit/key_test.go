package audit_test

import (
	"os"
	"path/filepath"
	"strings"
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
	for _, damaged := range []string{"", "no key", strings.Repeat("0", 2<<10)} {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.LoadKey(path); err == nil || !strings.Contains(err.Error(), "from a backup") {
			t.Errorf("a damaged key was replaced, or nobody is told what to do: %v", err)
		}
	}
}
