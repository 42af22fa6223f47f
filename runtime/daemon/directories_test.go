package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/runtime/config"
)

// A state directory with a long path has its sockets below the system's temporary folder, where nobody else would clean up.
func TestTheRuntimeDirectoryGoesWithTheDaemon(t *testing.T) {
	base := os.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	for name, state := range map[string]string{
		"in the state directory": "s", "elsewhere": strings.Repeat("long", 20),
	} {
		t.Run(name, func(t *testing.T) {
			short, err := os.MkdirTemp(base, "hd")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := os.RemoveAll(short); err != nil {
					t.Error(err)
				}
			})
			cfg, diags := config.Default(nil)
			if err := diags.Err(); err != nil {
				t.Fatal(err)
			}
			cfg.StateDir = filepath.Join(short, state)
			dirs, err := makeDirectories(cfg.StateDir)
			if err != nil {
				t.Fatal(err)
			}
			left := filepath.Join(dirs.runtime, "plugin-dir1", "plugin2") // by a daemon that was killed
			if err := os.MkdirAll(left, 0o700); err != nil {
				t.Fatal(err)
			}
			run := func(check func()) error {
				d, err := New(&Options{Config: cfg, Standalone: true})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- d.Run(ctx) }()
				select {
				case <-d.Ready():
					check()
					cancel()
					return <-ended
				case err := <-ended:
					cancel()
					return err
				}
			}
			err = run(func() {
				if _, err := os.Stat(left); !os.IsNotExist(err) {
					t.Errorf("what was left is still there: %v", err)
				}
				if err := os.MkdirAll(left, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := run(func() {}); err == nil {
					t.Error("a second daemon ran")
				}
				if _, err := os.Stat(left); err != nil {
					t.Errorf("a second daemon removed what the first uses: %v", err)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(dirs.runtime); !os.IsNotExist(err) {
				t.Errorf("the runtime directory is still there: %v", err)
			}
		})
	}
}
