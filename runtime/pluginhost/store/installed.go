package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hermesd/hermesd/internal/atomicfile"
)

const (
	indexName     = "installed.json"
	indexFormat   = 1
	maxIndexBytes = 16 << 20
	// maxReleases is how many releases of a plugin are kept to go back to.
	maxReleases = 5
)

// Installed are the plugins in a folder: each binary under the digest of its content, and an index that says which is whose.
type Installed struct{ dir string }

// OpenInstalled returns the store in dir, which is made by the first installation.
func OpenInstalled(dir string) *Installed { return &Installed{dir: dir} }

// Release is one installed binary of a plugin.
type Release struct {
	Version   string    `json:"version,omitempty"` // as the bundle says; "" unknown
	SHA256    string    `json:"sha256"`
	Source    string    `json:"source"` // what it was installed from
	Installed time.Time `json:"installed"`
}

// Plugin is an installed plugin.
type Plugin struct {
	Name string `json:"name"`
	// Releases are what was installed, the newest first; Current is the place of the one in use.
	Releases []Release `json:"releases"`
	Current  int       `json:"current"`
	Pinned   bool      `json:"pinned,omitempty"` // no other release replaces the current one
}

// Release is the one in use.
func (p *Plugin) Release() *Release { return &p.Releases[p.Current] }

type index struct {
	Format  int                `json:"format"`
	Plugins map[string]*Plugin `json:"plugins"`
}

func (s *Installed) read() (*index, error) {
	content, err := readBounded(filepath.Join(s.dir, indexName), maxIndexBytes)
	if err != nil {
		return nil, fmt.Errorf("plugin store: %w", err)
	}
	x := &index{Format: indexFormat, Plugins: map[string]*Plugin{}}
	if content == nil {
		return x, nil
	}
	if err := parseIndex(content, x); err != nil {
		return nil, fmt.Errorf("plugin store: %s: %w; restore it, or remove it and install the plugins again", filepath.Join(s.dir, indexName), err)
	}
	return x, nil
}

func parseIndex(content []byte, x *index) error {
	if err := json.Unmarshal(content, x); err != nil {
		return err
	}
	if x.Format != indexFormat {
		return fmt.Errorf("it has format %d, this hermesd knows %d", x.Format, indexFormat)
	}
	for name, p := range x.Plugins {
		if !ValidName(name) || p == nil || p.Name != name || p.Current < 0 || p.Current >= len(p.Releases) {
			return fmt.Errorf("its entry %q is damaged", name)
		}
		for _, r := range p.Releases {
			if !digestPattern.MatchString(r.SHA256) {
				return fmt.Errorf("its entry %q is damaged", name)
			}
		}
	}
	return nil
}

func (s *Installed) write(x *index) error {
	content, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(s.dir, indexName), append(content, '\n'))
}

// change edits the index as its only writer.
func (s *Installed) change(f func(x *index) error) error {
	return exclusively(s.dir, func() error {
		x, err := s.read()
		if err != nil {
			return err
		}
		if err := f(x); err != nil {
			return err
		}
		return s.write(x)
	})
}

// edit edits one plugin's entry.
func (s *Installed) edit(name string, f func(p *Plugin) error) (*Plugin, error) {
	var edited *Plugin
	err := s.change(func(x *index) error {
		edited = x.Plugins[name]
		if edited == nil {
			return notInstalled(name)
		}
		return f(edited)
	})
	return edited, err
}

func notInstalled(name string) error {
	return fmt.Errorf("no plugin %q is installed; install it with: hermesd plugin install --name %s PATH", name, name)
}

// List are all installed plugins, by name.
func (s *Installed) List() ([]*Plugin, error) {
	x, err := s.read()
	if err != nil {
		return nil, err
	}
	list := make([]*Plugin, 0, len(x.Plugins))
	for _, name := range slices.Sorted(maps.Keys(x.Plugins)) {
		list = append(list, x.Plugins[name])
	}
	return list, nil
}

// Find returns the path of a plugin's binary and what is known of it. The path is the content's: whoever starts it checks
// that it still has the digest.
func (s *Installed) Find(name string) (path string, r *Release, err error) {
	x, err := s.read()
	if err != nil {
		return "", nil, err
	}
	p := x.Plugins[name]
	if p == nil {
		return "", nil, notInstalled(name)
	}
	return s.path(p.Release().SHA256), p.Release(), nil
}

func (s *Installed) path(digest string) string { return filepath.Join(s.dir, "sha256", digest) }

// Pin keeps a plugin's current release from being replaced, or lets it be replaced again.
func (s *Installed) Pin(name string, pinned bool) (*Plugin, error) {
	return s.edit(name, func(p *Plugin) error {
		p.Pinned = pinned
		return nil
	})
}

// Rollback goes back to the release that was installed before the current one.
func (s *Installed) Rollback(name string) (*Plugin, error) {
	return s.edit(name, func(p *Plugin) error {
		if p.Current+1 >= len(p.Releases) {
			return fmt.Errorf("plugin %q has no earlier release", name)
		}
		p.Current++
		return s.check(p.Release().SHA256)
	})
}

// Verification is what became of checking one plugin's content.
type Verification struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Fault  string `json:"fault,omitempty"` // "" if the content is what the digest says
}

// Verify hashes the current releases again, of one plugin or with name "" of all.
func (s *Installed) Verify(name string) ([]Verification, error) {
	plugins, err := s.List()
	if err != nil {
		return nil, err
	}
	var list []Verification
	for _, p := range plugins {
		if name != "" && p.Name != name {
			continue
		}
		v := Verification{Name: p.Name, SHA256: p.Release().SHA256}
		if err := s.check(v.SHA256); err != nil {
			v.Fault = err.Error()
		}
		list = append(list, v)
	}
	if name != "" && list == nil {
		return nil, notInstalled(name)
	}
	return list, nil
}

// check holds the content of a digest against it.
func (s *Installed) check(digest string) error {
	f, err := os.Open(s.path(digest))
	if err != nil {
		return fmt.Errorf("%w; install it again", err)
	}
	defer f.Close() //nolint:errcheck // only read
	h := newHash()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := h.text(); got != digest {
		return fmt.Errorf("%s was changed: its SHA-256 is %s; install it again", s.path(digest), got)
	}
	return nil
}

// add puts a release on top, drops what is too old, and removes content that belongs to nobody any more.
func (x *index) add(name string, r Release) (*Plugin, error) {
	p := x.Plugins[name]
	if p == nil {
		p = &Plugin{Name: name}
		x.Plugins[name] = p
	}
	if len(p.Releases) > 0 && p.Release().SHA256 == r.SHA256 {
		return p, nil
	}
	if p.Pinned {
		return nil, fmt.Errorf("plugin %q is pinned to %s %s; let go of it first with: hermesd plugin pin --off %s", name, p.Release().Version, short(p.Release().SHA256), name)
	}
	p.Releases = slices.DeleteFunc(p.Releases, func(old Release) bool { return old.SHA256 == r.SHA256 })
	p.Releases = append([]Release{r}, p.Releases...)
	p.Releases = p.Releases[:min(len(p.Releases), maxReleases)]
	p.Current = 0
	return p, nil
}

// sweep removes content without an owner.
func (s *Installed) sweep(x *index) error {
	owned := map[string]bool{}
	for _, p := range x.Plugins {
		for _, r := range p.Releases {
			owned[r.SHA256] = true
		}
	}
	files, err := os.ReadDir(filepath.Join(s.dir, "sha256"))
	if err != nil {
		return err
	}
	var faults []error
	for _, f := range files {
		if digestPattern.MatchString(f.Name()) && !owned[f.Name()] {
			faults = append(faults, os.Remove(s.path(f.Name())))
		}
	}
	return errors.Join(faults...)
}
