//go:build unix

package procgroup_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/procgroup"
)

func TestOnlyRegularFilesAreProgramsAndNothingElseHoldsTheOpener(t *testing.T) {
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	if err := syscall.Mkfifo(pipe, 0o700); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	if err := os.WriteFile(file, []byte("x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "named pipe", dir: "folder", "/dev/null": "device", filepath.Join(dir, "nowhere"): "no such file", file: ""} {
		done := make(chan error, 1)
		go func() {
			f, err := procgroup.OpenProgram(path)
			if err == nil {
				err = f.Close()
			}
			done <- err
		}()
		select {
		case err := <-done:
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", path, err, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s holds the opener", path)
		}
	}
}
