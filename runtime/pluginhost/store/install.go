package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hermesd/hermesd/internal/atomicfile"
	"github.com/hermesd/hermesd/internal/procgroup"
)

// maxBinary bounds one plugin's binary, in bytes.
const maxBinary = 1 << 30

// InstallOptions say what a bundle says of itself, and a bare binary does not.
type InstallOptions struct {
	Name    string // "": as the bundle says, else the file's name
	Version string // "": as the bundle says
	// OS and Arch choose among a bundle's binaries, in Go's words; "" is this machine.
	OS, Arch string
}

// Install puts a plugin's binary, or the one for this machine of a bundle, into the store and makes it the current release.
func (s *Installed) Install(source string, o InstallOptions) (*Plugin, error) {
	f, err := procgroup.OpenProgram(source)
	if err != nil {
		return nil, fmt.Errorf("%w (wanted is a plugin's binary, or a bundle)", err)
	}
	defer f.Close() //nolint:errcheck // only read
	bundled, err := isBundle(f)
	if err != nil {
		return nil, err
	}
	if absolute, err := filepath.Abs(source); err == nil {
		source = absolute
	}
	var installed *Plugin
	err = s.change(func(x *index) error {
		c, err := s.newContent()
		if err != nil {
			return err
		}
		defer c.discard()
		if bundled {
			err = c.fromBundle(f, &o)
		} else {
			o.Name = cmp.Or(o.Name, strings.ToLower(strings.TrimSuffix(filepath.Base(source), filepath.Ext(source))))
			err = c.copy(f, maxBinary)
		}
		if err != nil {
			return err
		}
		if !ValidName(o.Name) {
			return fmt.Errorf("%q cannot be a plugin's name (1 to 32 of a-z 0-9 _ -, first a letter or digit); give one with --name", o.Name)
		}
		digest, err := c.keep()
		if err != nil {
			return err
		}
		if installed, err = x.add(o.Name, Release{Version: o.Version, SHA256: digest, Source: source, Installed: time.Now().UTC().Truncate(time.Second)}); err != nil {
			return err
		}
		return s.sweep(x)
	})
	return installed, err
}

// content is a binary on its way into the store.
type content struct {
	store *Installed
	file  *os.File
	hash  digester
}

func (s *Installed) newContent() (*content, error) {
	if err := os.MkdirAll(filepath.Join(s.dir, "sha256"), 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Join(s.dir, "sha256"), ".new-*")
	if err != nil {
		return nil, err
	}
	return &content{store: s, file: f, hash: newHash()}, nil
}

// copy takes the binary from r, which must end within limit bytes.
func (c *content) copy(r io.Reader, limit int64) error {
	n, err := io.Copy(io.MultiWriter(c.file, c.hash), io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return err
	case n > limit:
		return fmt.Errorf("the binary has more than %d bytes", limit)
	case n == 0:
		return errors.New("the binary is empty")
	}
	return nil
}

// keep makes the content the store's, under its digest.
func (c *content) keep() (digest string, err error) {
	digest = c.hash.text()
	path := c.store.path(digest)
	if err := errors.Join(c.file.Chmod(0o500), c.file.Sync(), c.file.Close()); err != nil {
		return "", err
	}
	if err := os.Rename(c.file.Name(), path); err != nil {
		return "", err
	}
	c.file = nil
	return digest, atomicfile.SyncFolder(filepath.Dir(path))
}

// discard removes content that was not kept.
func (c *content) discard() {
	if c.file != nil {
		c.file.Close()           //nolint:errcheck // it is thrown away; it may be closed already
		os.Remove(c.file.Name()) //nolint:errcheck // what stays is swept by nobody, and harmless
	}
}

type digester struct{ hash.Hash }

func newHash() digester { return digester{sha256.New()} }

func (d digester) text() string { return hex.EncodeToString(d.Sum(nil)) }
