// Package atomicfile is the one way in which this repository replaces a file: whoever reads it, and whoever comes after a
// crash or the loss of power, finds the old content or the new, never a part of one.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// private is the mode of what the daemon keeps.
const private fs.FileMode = 0o600

// Write makes the file at path hold content, for its owner alone. What was there before is replaced, a symbolic link too.
func Write(path string, content []byte) error {
	return replace(path, content, func(f *os.File) error { return f.Chmod(private) })
}

// Rewrite replaces the content of a file that is there and belongs to somebody else, such as an operator: it keeps its mode
// and its owner, and a symbolic link stays one. It fails, and changes nothing, if they cannot be kept.
func Rewrite(path string, content []byte) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	before, err := os.Stat(target)
	if err != nil {
		return err
	}
	return replace(target, content, func(f *os.File) error {
		if err := keepOwner(f, before); err != nil { // before the mode: a new owner clears its special bits
			return fmt.Errorf("%s would get another owner: %w; run this as its owner", target, err)
		}
		return f.Chmod(before.Mode())
	})
}

// Create makes a file that must not be there yet, for its owner alone. The error is [fs.ErrExist] if it is.
func Create(path string, content []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	if err := fill(f, content); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

func replace(path string, content []byte, prepare func(*os.File) error) (err error) {
	dir := filepath.Dir(path) // a file can only be renamed within its file system
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		if left := os.Remove(f.Name()); !errors.Is(left, fs.ErrNotExist) { // it has its name only until it is renamed
			err = errors.Join(err, left)
		}
	}()
	if err := prepare(f); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := fill(f, content); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	if err := SyncFolder(dir); err != nil {
		return fmt.Errorf("%s has its new content, which may not survive the loss of power: %w", path, err)
	}
	return nil
}

// fill writes a file to the disk and closes it.
func fill(f *os.File, content []byte) error {
	_, err := f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// SyncFolder brings the names in a folder to the disk: a file that was made or renamed is only found after the loss of power
// if its folder was written, too. File systems that know no such thing are believed.
func SyncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
