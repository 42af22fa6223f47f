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
	"regexp"
)

// digestPattern is a SHA-256 in hexadecimal.
var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// labelPattern is what config takes as a provider's label; names of files are made of it.
var labelPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// ValidName reports whether name can be a provider's.
func ValidName(name string) bool { return labelPattern.MatchString(name) }

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
