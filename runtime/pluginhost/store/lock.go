package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hermesd/hermesd/internal/atomicfile"
	"github.com/hermesd/hermesd/runtime/tool"
)

// linger is how long what is newly trusted waits for company: many servers that list their tools at once are written once.
const linger = 200 * time.Millisecond

// Lock is a daemon's view of the lock file: trust on first use, refusal of what changed since, and the news when the
// operator accepted it. What is newly trusted is written by [Lock.Run], so that nobody waits for a disk.
type Lock struct {
	dir    string
	logger *slog.Logger
	most   room // of one provider

	disk reader

	mu      sync.Mutex
	file    *lockFile
	keepers map[string]*Keeper
	dirty   map[string]bool // keepers with something to write
	wake    chan struct{}   // capacity 1: something is dirty
}

// OpenLock reads the lock file in dir. A file that cannot be read is no error: those that it may speak of are refused.
// logger may be nil.
func OpenLock(dir string, logger *slog.Logger) *Lock {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	l := &Lock{dir: dir, logger: logger, most: room{maxKnownTools, maxKnownBytes}, keepers: map[string]*Keeper{}, dirty: map[string]bool{}, wake: make(chan struct{}, 1)}
	l.file = l.read()
	if l.file.damage != "" {
		logger.Error("the lock file is damaged; providers stay quarantined until it is restored or removed", "file", l.path(), "fault", l.file.damage)
	}
	return l
}

func (l *Lock) path() string { return filepath.Join(l.dir, LockName) }

func (l *Lock) read() *lockFile {
	f, err := l.disk.read(l.dir)
	if err != nil {
		return &lockFile{damage: err.Error()}
	}
	return f
}

// KeeperOptions say whose trust is kept.
type KeeperOptions struct {
	Name string
	Kind string // "plugin" or "mcp"
	// Shipped is a plugin that comes with hermesd and changes with it: its changes are accepted by themselves, and logged.
	Shipped bool
	// OnChange is told that the operator accepted something. It must not block. nil is told nothing.
	OnChange func()
}

// For returns the keeper of one provider.
func (l *Lock) For(o KeeperOptions) *Keeper {
	k := &Keeper{lock: l, options: o}
	var err error
	if k.record, err = readRecord(l.dir, o.Name); err != nil {
		l.logger.Warn("the accepted definitions of a provider cannot be read; changes cannot be shown field by field", "provider", o.Name, "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keepers[o.Name] = k
	return k
}

// Keeper decides about one provider. Its methods may be called from any goroutine.
type Keeper struct {
	lock    *Lock
	options KeeperOptions
	record  *record // guarded by lock.mu
	looks   looks   // of the tools that were last listed; guarded by lock.mu
}

// Binary decides whether a program may start. The first one is trusted.
func (k *Keeper) Binary(digest string) error {
	l := k.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	e, damage := l.file.of(k.options.Name)
	switch {
	case k.options.Shipped && l.file.damage != "":
		return nil
	case damage != "" && !k.options.Shipped:
		k.pend(&k.record.PendingBinary, digest)
		return k.damaged(damage)
	case e != nil && e.Binary == digest:
		k.pend(&k.record.PendingBinary, "")
		return nil
	case e == nil || e.Binary == "" || k.options.Shipped:
		if e != nil && e.Binary != "" {
			l.logger.Info("a plugin that is shipped with hermesd changed", "provider", k.options.Name, "sha256", digest)
		}
		k.entry().Binary = digest
		k.pend(&k.record.PendingBinary, "")
		k.mark()
		return nil
	}
	k.pend(&k.record.PendingBinary, digest)
	return fmt.Errorf("its binary changed since it was accepted on %s (SHA-256 %s, now %s): make sure that the change is wanted, then run: hermesd plugin lock %s",
		e.Accepted.Format(time.DateOnly), short(e.Binary), short(digest), k.options.Name)
}

func (k *Keeper) damaged(why string) error {
	if k.lock.file.damage != "" {
		return fmt.Errorf("the lock file %s is damaged (%s), so nobody knows what was accepted: restore it, or remove it to trust everything as it is now", k.lock.path(), why)
	}
	return fmt.Errorf("its entry in %s is damaged (%s): look at it with hermesd plugin lock --diff %[3]s, then run: hermesd plugin lock %[3]s", k.lock.path(), why, k.options.Name)
}

// Tools decides about the definitions that a provider lists and returns why each that must not be used is refused, by its
// full name. A tool that was never seen is trusted; one that is missing from the list stays trusted.
func (k *Keeper) Tools(tools []tool.Definition) map[tool.Name]string {
	found, full := make(map[string]*seen, len(tools)), make(map[string]tool.Name, len(tools))
	refused := map[tool.Name]string{}
	for i := range tools {
		def, digest, err := Of(&tools[i])
		if err != nil {
			refused[tools[i].Name] = "its definition cannot be read: " + err.Error()
			continue
		}
		found[def.Name], full[def.Name] = &seen{Definition: def, Digest: digest}, tools[i].Name
	}
	k.examine(found, full)
	listed := looksOf(slices.Collect(maps.Values(full))...)
	l := k.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	k.looks = listed
	room := k.room()
	for i := range tools {
		if s := found[tools[i].OwnName]; s != nil {
			if reason := k.judge(s, tools[i].Name, room); reason != "" {
				refused[tools[i].Name] = reason
			}
		}
	}
	return refused
}

// judge decides about one definition.
func (k *Keeper) judge(s *seen, full tool.Name, room *room) (refused string) {
	l := k.lock
	own := s.Definition.Name
	e, damage := l.file.of(k.options.Name)
	if k.options.Shipped && l.file.damage != "" {
		return ""
	}
	accepted := ""
	if e != nil {
		accepted = e.Tools[own]
	}
	switch {
	case damage != "" && !k.options.Shipped:
		k.await(s, full, room)
		return k.damaged(damage).Error()
	case accepted == s.Digest:
		if k.record.Pending[own] != nil {
			delete(k.record.Pending, own)
			k.mark()
		}
		if old := k.record.Accepted[own]; (old == nil || old.Digest != s.Digest) && room.forBytes(s) { // the record was lost
			k.accept(s, full)
		}
		return ""
	case accepted == "" && !k.options.Shipped && !room.forTool(s):
		return fmt.Sprintf("the provider has listed more different tools by now than can be remembered (%d, or %d bytes): if that is as it should be, remove its entry from %s, and what it lists then is trusted anew",
			l.most.tools, l.most.bytes, l.path())
	case accepted == "" || k.options.Shipped:
		k.entry().Tools[own] = s.Digest
		delete(k.record.Pending, own)
		k.accept(s, full)
		return ""
	}
	k.await(s, full, room)
	return fmt.Sprintf("its definition changed since it was accepted on %s: look at it with hermesd plugin lock --diff %[2]s, accept it with hermesd plugin lock %[2]s",
		e.Accepted.Format(time.DateOnly), k.options.Name)
}

func (k *Keeper) accept(s *seen, full tool.Name) {
	for _, f := range s.Findings {
		k.lock.logger.Warn("a tool's definition may mislead models", "provider", k.options.Name, "tool", full, "kind", f.Kind, "field", f.Field, "detail", f.Detail)
	}
	k.record.Accepted[s.Definition.Name] = s
	k.mark()
}

// await keeps a definition for the operator to look at. One for which there is no room is refused all the same.
func (k *Keeper) await(s *seen, full tool.Name, room *room) {
	own := s.Definition.Name
	old := k.record.Pending[own]
	if old != nil && old.Digest == s.Digest || old == nil && len(k.record.Pending) >= k.lock.most.tools || !room.forBytes(s) {
		return
	}
	k.record.Pending[own] = s
	k.lock.logger.Warn("a tool is quarantined: its definition changed", "provider", k.options.Name, "tool", full)
	k.mark()
}

// examine looks through the definitions that were not seen before. It takes a time that the provider decides, so nobody else
// waits for it.
func (k *Keeper) examine(found map[string]*seen, full map[string]tool.Name) {
	l, fresh := k.lock, []*seen{}
	l.mu.Lock()
	for own, s := range found {
		if old := k.record.find(own, s.Digest); old != nil {
			s.Findings = old.Findings
		} else {
			fresh = append(fresh, s)
		}
	}
	others := make(map[string]looks, len(l.keepers))
	for label, other := range l.keepers {
		if label != k.options.Name {
			others[label] = other.looks
		}
	}
	l.mu.Unlock()
	for _, s := range fresh {
		list, err := Scan(s.Definition)
		if err != nil {
			list = []Finding{{FindHidden, "", "the definition cannot be looked through: " + err.Error()}}
		}
		own := s.Definition.Name
		s.Findings = append(list, imitates(own, full[own], others)...)
	}
}

func (k *Keeper) pend(field *string, digest string) {
	if *field != digest {
		*field = digest
		k.mark()
	}
}

// entry is what to write into.
func (k *Keeper) entry() *entry {
	f, name := k.lock.file, k.options.Name
	if f.providers[name] == nil {
		f.providers[name] = &entry{Kind: k.options.Kind, Accepted: time.Now().UTC().Truncate(time.Second), Tools: map[string]string{}}
		delete(f.damaged, name) // of a shipped plugin, which is trusted anyway
	}
	return f.providers[name]
}

func (k *Keeper) mark() {
	k.lock.dirty[k.options.Name] = true
	select {
	case k.lock.wake <- struct{}{}:
	default:
	}
}

func short(digest string) string { return digest[:min(12, len(digest))] + "…" }

// Run writes what is newly trusted and looks for what the operator accepted, until ctx ends; then it writes the rest.
func (l *Lock) Run(ctx context.Context) error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return fmt.Errorf("lock file: %w", err)
	}
	watcher, err := watch(l.dir)
	if err != nil {
		return fmt.Errorf("lock file: %w", err)
	}
	defer watcher.Close() //nolint:errcheck // it is not used any more
	l.reload()
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			l.Flush()
			return nil
		case <-l.wake:
			if due == nil {
				due = time.After(linger)
			}
		case <-due:
			due = nil
			l.Flush()
		case event := <-watcher.Events:
			if filepath.Base(event.Name) == LockName {
				l.reload()
			}
		case err := <-watcher.Errors:
			l.logger.Warn("watching the lock file", "error", err)
			l.reload()
		}
	}
}

// reload takes over what another process wrote, and tells those whose entries changed.
func (l *Lock) reload() {
	l.mu.Lock()
	var tell []func()
	before := l.file
	l.file = l.read()
	for name, k := range l.keepers {
		old, wasDamaged := before.of(name)
		now, isDamaged := l.file.of(name)
		if l.dirty[name] && old != nil && isDamaged == "" { // what is trusted here and not written yet
			now = merge(now, old, k.options.Shipped)
			l.file.providers[name] = now
		}
		if old.equal(now) && wasDamaged == isDamaged || old == nil && now == nil && wasDamaged == isDamaged {
			continue
		}
		if fresh, err := readRecord(l.dir, name); err == nil && !l.dirty[name] {
			k.record = fresh
		}
		if k.options.OnChange != nil {
			tell = append(tell, k.options.OnChange)
		}
	}
	l.mu.Unlock()
	for _, f := range tell {
		f()
	}
}

// merge adds to an entry on the disk what is trusted in memory. What is there already was accepted by the operator and stays.
func merge(disk, memory *entry, overwrite bool) *entry {
	if disk == nil {
		return memory.clone()
	}
	e := disk.clone()
	if e.Binary == "" || overwrite && memory.Binary != "" {
		e.Binary = memory.Binary
	}
	for own, digest := range memory.Tools {
		if _, there := e.Tools[own]; !there || overwrite {
			e.Tools[own] = digest
		}
	}
	return e
}

// Flush writes what is not written yet. What cannot be written stays trusted until the daemon ends.
func (l *Lock) Flush() {
	l.mu.Lock()
	names := slices.Sorted(maps.Keys(l.dirty))
	clear(l.dirty)
	entries, records, shipped := map[string]*entry{}, map[string][]byte{}, map[string]bool{}
	var faults []error
	for _, name := range names {
		if e := l.file.providers[name]; e != nil {
			entries[name] = e.clone()
		}
		shipped[name] = l.keepers[name].options.Shipped
		content, err := marshal(l.keepers[name].record)
		faults = append(faults, err)
		records[name] = content
	}
	l.mu.Unlock()
	if len(names) == 0 {
		return
	}
	faults = append(faults, exclusively(l.dir, func() error {
		disk, err := l.disk.read(l.dir)
		if err != nil {
			return err
		}
		var faults []error
		for _, name := range names {
			if records[name] != nil {
				faults = append(faults, atomicfile.Write(recordPath(l.dir, name), records[name]))
			}
		}
		if disk.damage != "" {
			return errors.Join(faults...) // nothing is written over what a human must look at
		}
		changed := false
		for name, e := range entries {
			if disk.damaged[name] != "" && !shipped[name] {
				continue
			}
			now := merge(disk.providers[name], e, shipped[name])
			changed = changed || !now.equal(disk.providers[name])
			disk.providers[name] = now
		}
		if changed {
			faults = append(faults, disk.write(l.dir))
		}
		return errors.Join(faults...)
	}))
	if err := errors.Join(faults...); err != nil {
		l.logger.Error("the lock file was not written; what is trusted now will be trusted anew after a restart", "file", l.path(), "error", err)
	}
}
