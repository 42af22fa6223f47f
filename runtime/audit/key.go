package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/hermesd/hermesd/internal/atomicfile"
)

// maxKey bounds the file of a key, in bytes.
const maxKey = 1 << 10

// LoadKey reads the key that signs checkpoints from a file, and makes both where there is none. The file is readable for
// its owner only; whoever can read it can hide what was pruned.
func LoadKey(path string) (ed25519.PrivateKey, error) {
	if info, err := os.Stat(path); err == nil && (!info.Mode().IsRegular() || info.Size() > maxKey) {
		return nil, fmt.Errorf("audit key %s: is no ordinary file of at most %d bytes: move it away, and restore it from a backup", path, maxKey)
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("audit key: %w", err)
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("audit key %s: must be %d bytes in hexadecimal; restore it from a backup, else the checkpoint in the audit cannot be verified", path, ed25519.SeedSize)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

func makeKey(path string) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("audit key: %w", err)
	}
	if err := atomicfile.Create(path, []byte(hex.EncodeToString(key.Seed())+"\n")); err != nil {
		return nil, fmt.Errorf("audit key: %w", err)
	}
	return key, nil
}
