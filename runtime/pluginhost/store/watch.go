package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// Watch calls changed with the name of every plugin whose current release becomes another one, until ctx ends. An index that
// cannot be read is waited out: its next version counts.
func (s *Installed) Watch(ctx context.Context, changed func(name string)) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("plugin store: %w", err)
	}
	watcher, err := watch(s.dir)
	if err != nil {
		return fmt.Errorf("plugin store: %w", err)
	}
	defer watcher.Close() //nolint:errcheck // it is not used any more
	known := s.current(nil)
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-watcher.Events:
			if filepath.Base(event.Name) != indexName {
				continue
			}
		case <-watcher.Errors: // events may be lost
		}
		now := s.current(known)
		for name, digest := range now {
			if known[name] != digest {
				changed(name)
			}
		}
		known = now
	}
}

// current is the digest of every plugin's current release, or before if that cannot be read.
func (s *Installed) current(before map[string]string) map[string]string {
	plugins, err := s.List()
	if err != nil {
		return before
	}
	now := map[string]string{}
	for _, p := range plugins {
		now[p.Name] = p.Release().SHA256
	}
	return now
}

func watch(dir string) (*fsnotify.Watcher, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := watcher.Add(dir); err != nil {
		watcher.Close() //nolint:errcheck // the first error tells more
		return nil, fmt.Errorf("watching %s: %w", dir, err)
	}
	return watcher, nil
}
