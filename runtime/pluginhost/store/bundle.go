package store

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// ManifestName is the first entry of a bundle.
const ManifestName = "plugin.json"

// The bounds of a bundle.
const (
	maxManifest      = 64 << 10
	maxBundleEntries = 256
	maxBundleBytes   = 4 << 30 // unpacked
	maxPlatforms     = 64
)

// Manifest says what a bundle holds. A bundle is a tar archive, packed with gzip, whose first entry is the manifest.
type Manifest struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	Binaries []Binary `json:"binaries"`
}

// Binary is one of a bundle's: for an operating system and an architecture, in Go's words.
type Binary struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Path   string `json:"path"` // in the archive, with slashes
	SHA256 string `json:"sha256"`
}

// ParseManifest reads and checks a manifest.
func ParseManifest(content []byte) (*Manifest, error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	var m Manifest
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestName, err)
	}
	switch {
	case !ValidName(m.Name):
		return nil, fmt.Errorf("%s: name %q: want 1 to 32 of a-z 0-9 _ -, first a letter or digit", ManifestName, m.Name)
	case len(m.Version) > 64 || strings.ContainsFunc(m.Version, func(r rune) bool { return r < ' ' || r > '~' }):
		return nil, fmt.Errorf("%s: version: want at most 64 printable characters", ManifestName)
	case len(m.Binaries) == 0 || len(m.Binaries) > maxPlatforms:
		return nil, fmt.Errorf("%s: it names %d binaries: want 1 to %d", ManifestName, len(m.Binaries), maxPlatforms)
	}
	for _, b := range m.Binaries {
		if b.OS == "" || b.Arch == "" || !local(b.Path) || !digestPattern.MatchString(b.SHA256) {
			return nil, fmt.Errorf("%s: binary %q: want os, arch, a path within the bundle, and a sha256 of 64 hexadecimal digits", ManifestName, b.Path)
		}
	}
	return &m, nil
}

// local reports whether a path of an archive stays in it and is written the one plain way.
func local(name string) bool {
	return name != "" && len(name) < 256 && !strings.Contains(name, `\`) && path.Clean(name) == name && filepath.IsLocal(name)
}

func isBundle(f io.ReadSeeker) (bool, error) {
	var magic [2]byte
	n, err := io.ReadFull(f, magic[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return n == 2 && magic == [2]byte{0x1f, 0x8b}, err
}

// fromBundle takes the binary for the wanted machine from a bundle, and name and version, where the options give none.
func (c *content) fromBundle(r io.Reader, o *InstallOptions) error {
	zipped, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	unpacked := &io.LimitedReader{R: zipped, N: maxBundleBytes}
	in := tar.NewReader(unpacked)
	var want *Binary
	taken := false
	for n := 0; ; n++ {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("bundle: %w", err)
		}
		name := strings.TrimSuffix(head.Name, "/")
		switch {
		case n >= maxBundleEntries:
			return fmt.Errorf("bundle: it has more than %d entries", maxBundleEntries)
		case !local(name):
			return fmt.Errorf("bundle: the entry %q leads out of it, or is written in a roundabout way", head.Name)
		case head.Typeflag != tar.TypeReg && head.Typeflag != tar.TypeDir:
			return fmt.Errorf("bundle: %s is neither a file nor a folder", name)
		case n == 0:
			if want, err = chooseBinary(in, head, o); err != nil {
				return err
			}
		case name == want.Path && taken:
			return fmt.Errorf("bundle: it has two entries %s", name)
		case name == want.Path:
			taken = true
			if err := c.copy(in, maxBinary); err != nil {
				return fmt.Errorf("bundle: %s: %w", name, err)
			}
		}
	}
	switch got := c.hash.text(); {
	case unpacked.N == 0:
		return fmt.Errorf("bundle: it unpacks to more than %d bytes", int64(maxBundleBytes))
	case want == nil:
		return errors.New("bundle: it is empty")
	case !taken:
		return fmt.Errorf("bundle: it has no %s, which %s names", want.Path, ManifestName)
	case got != want.SHA256:
		return fmt.Errorf("bundle: %s has the SHA-256 %s, %s says %s: it is damaged or was tampered with", want.Path, got, ManifestName, want.SHA256)
	}
	return nil
}

// chooseBinary reads the manifest, which must be the first entry, and picks the wanted machine's binary.
func chooseBinary(in io.Reader, head *tar.Header, o *InstallOptions) (*Binary, error) {
	if head.Name != ManifestName || head.Size > maxManifest {
		return nil, fmt.Errorf("bundle: its first entry must be %s, of at most %d bytes", ManifestName, maxManifest)
	}
	content, err := io.ReadAll(io.LimitReader(in, maxManifest))
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	m, err := ParseManifest(content)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	os, arch := cmp.Or(o.OS, runtime.GOOS), cmp.Or(o.Arch, runtime.GOARCH)
	i := slices.IndexFunc(m.Binaries, func(b Binary) bool { return b.OS == os && b.Arch == arch })
	if i < 0 {
		var have []string
		for _, b := range m.Binaries {
			have = append(have, b.OS+"/"+b.Arch)
		}
		return nil, fmt.Errorf("bundle: it has no binary for %s/%s, only for %s", os, arch, strings.Join(have, ", "))
	}
	o.Name, o.Version = cmp.Or(o.Name, m.Name), cmp.Or(o.Version, m.Version)
	return &m.Binaries[i], nil
}
