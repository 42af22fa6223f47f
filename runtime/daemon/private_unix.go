//go:build unix

package daemon

import (
	"fmt"
	"os"
	"syscall"
)

// private makes sure that a directory belongs to this user and is closed to others: a folder below the system's
// temporary one could have been put there by somebody else.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || ok && int(owner.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a directory of this user; remove it or set another state_dir", dir)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(dir, info.Mode().Perm()&^0o077); err != nil {
		return fmt.Errorf("close %s to other users: %w", dir, err)
	}
	return nil
}
