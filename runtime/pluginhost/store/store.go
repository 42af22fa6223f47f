// Package store keeps what an operator has agreed to: the plugins that are installed, each under the digest of its content,
// and the lock file, which says which binary and which tool definitions of every provider were accepted.
//
// Everything lies in files that the command line and a running daemon share. One writes at a time, under a lock of the
// kernel's; a reader sees the old content or the new.
package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// digestPattern is a SHA-256 in hexadecimal.
var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// labelPattern is what config takes as a provider's label; names of files are made of it.
var labelPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// ValidName reports whether name can be a provider's.
func ValidName(name string) bool { return labelPattern.MatchString(name) }

// replaceFile writes a file in one step and makes it last: after a crash it has its old content or the new.
func replaceFile(path string, content []byte) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(dir)
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readBounded reads a file of at most limit bytes; one that is not there is nil.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return content, nil
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
