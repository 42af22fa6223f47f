package store

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Change is one thing that waits for the operator's word, or that was just accepted.
type Change struct {
	Provider string `json:"provider"`
	Tool     string `json:"tool,omitempty"` // the provider's own name for it; "" if the binary changed
	// Before and After are the digests; Before is "" where nobody knows what was accepted.
	Before string `json:"before,omitempty"`
	After  string `json:"after"`
	// Differences are field by field. They are nil if the accepted definition was not kept.
	Differences []Difference `json:"differences,omitempty"`
	Findings    []Finding    `json:"findings,omitempty"`
}

// Waiting lists what waits for the operator's word, in the folder of a lock file: of one provider, or with name "" of all.
func Waiting(dir, name string) ([]Change, error) {
	names := []string{name}
	if name == "" {
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			return nil, err
		}
		names = names[:0]
		for _, file := range files {
			if n := strings.TrimSuffix(filepath.Base(file), ".json"); ValidName(n) {
				names = append(names, n)
			}
		}
	}
	f, err := readLock(dir)
	if err != nil {
		return nil, err
	}
	var list []Change
	for _, n := range names {
		if !ValidName(n) {
			return nil, fmt.Errorf("%q is no provider's name", n)
		}
		r, err := readRecord(dir, n)
		if err != nil {
			return nil, err
		}
		e, _ := f.of(n)
		changes, err := changesOf(n, e, r)
		if err != nil {
			return nil, err
		}
		list = append(list, changes...)
	}
	return list, nil
}

func changesOf(name string, e *entry, r *record) ([]Change, error) {
	var list []Change
	if e == nil {
		e = &entry{}
	}
	if r.PendingBinary != "" && r.PendingBinary != e.Binary {
		list = append(list, Change{Provider: name, Before: e.Binary, After: r.PendingBinary})
	}
	for _, own := range slices.Sorted(maps.Keys(r.Pending)) {
		now := r.Pending[own]
		if now.Digest == e.Tools[own] {
			continue
		}
		c := Change{Provider: name, Tool: own, Before: e.Tools[own], After: now.Digest, Findings: now.Findings}
		if old := r.Accepted[own]; old != nil && old.Digest == c.Before {
			var err error
			if c.Differences, err = Diff(old.Definition, now.Definition); err != nil {
				return nil, err
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// Accept writes into the lock file that what waits of a provider is trusted from now on, and returns what that was. A
// running daemon notices.
func Accept(dir, name string) ([]Change, error) {
	var changes []Change
	err := exclusively(dir, func() error {
		f, err := readLock(dir)
		if err != nil {
			return err
		}
		if f.damage != "" {
			path := filepath.Join(dir, LockName)
			return fmt.Errorf("%s is damaged (%s): restore it from a backup, or remove it to trust everything as it is now", path, f.damage)
		}
		r, err := readRecord(dir, name)
		if err != nil {
			return err
		}
		e := f.providers[name]
		if changes, err = changesOf(name, e, r); err != nil || len(changes) == 0 {
			return err
		}
		if e == nil {
			e = &entry{Tools: map[string]string{}}
			f.providers[name] = e
		}
		e.Accepted = time.Now().UTC().Truncate(time.Second)
		for _, c := range changes {
			if c.Tool == "" {
				e.Binary = c.After
				continue
			}
			e.Tools[c.Tool] = c.After
			r.Accepted[c.Tool] = r.Pending[c.Tool]
		}
		r.PendingBinary, r.Pending = "", map[string]*seen{}
		// The record first: the lock file is what the daemon watches.
		if err := r.write(dir, name); err != nil {
			return err
		}
		return f.write(dir)
	})
	return changes, err
}

// ToolFindings are what was found in the accepted definition of one tool.
type ToolFindings struct {
	Tool     string    `json:"tool"`
	Findings []Finding `json:"findings"`
}

// Inspection is what a keeper knows, for `hermesd plugin inspect`.
type Inspection struct {
	Binary   string         `json:"binary,omitempty"` // the accepted digest
	Accepted time.Time      `json:"accepted,omitzero"`
	Damaged  string         `json:"damaged,omitempty"` // why nothing is trusted
	Waiting  []Change       `json:"waiting,omitempty"`
	Findings []ToolFindings `json:"findings,omitempty"` // about accepted definitions
}

// Inspect tells what was accepted and what waits.
func (k *Keeper) Inspect() Inspection {
	l := k.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	e, damage := l.file.of(k.options.Name)
	x := Inspection{Damaged: damage}
	if e != nil {
		x.Binary, x.Accepted = e.Binary, e.Accepted
	}
	var err error
	if x.Waiting, err = changesOf(k.options.Name, e, k.record); err != nil {
		x.Damaged = errors.Join(errors.New("what waits cannot be shown"), err).Error()
	}
	for _, own := range slices.Sorted(maps.Keys(k.record.Accepted)) {
		if s := k.record.Accepted[own]; len(s.Findings) > 0 {
			x.Findings = append(x.Findings, ToolFindings{own, s.Findings})
		}
	}
	return x
}
