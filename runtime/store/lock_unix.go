//go:build unix

package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lock is held by the one daemon that uses a state directory. The kernel takes it back when the daemon dies.
type lock struct{ file *os.File }

func acquire(dir string) (*lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "state.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w; %s", err, readOnly)
	}
	if err := lockFile(f); err != nil {
		defer f.Close()
		if isHeld(err) {
			return nil, fmt.Errorf("state directory %s is in use by another hermesd%s: stop that one, or set another state directory", dir, holder(f))
		}
		return nil, fmt.Errorf("locking the state directory %s: %w; it must be on a file system that has locks", dir, err)
	}
	pid := strconv.Itoa(os.Getpid()) + "\n"
	if err := errors.Join(f.Truncate(0), writeAt(f, pid)); err != nil {
		return nil, errors.Join(fmt.Errorf("state directory %s: %w; look at its free space", dir, err), f.Close())
	}
	return &lock{f}, nil
}

// lockFile takes a file for this opening of it alone, without waiting.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// isHeld says that somebody else has it.
func isHeld(err error) bool { return errors.Is(err, syscall.EWOULDBLOCK) }

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

// holder names the pid in the lock file; it is only for the message, the lock itself is the kernel's.
func holder(f *os.File) string {
	raw, err := io.ReadAll(io.LimitReader(f, 32))
	pid := strings.TrimSpace(string(raw))
	if _, bad := strconv.Atoi(pid); err != nil || bad != nil {
		return ""
	}
	return " (pid " + pid + ")"
}

func (l *lock) release() error {
	if err := l.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
