package audit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/store"
	"github.com/hermesd/hermesd/runtime/tool"
)

// promises are what a log has said so far: it must be true after a crash at that moment.
type promises struct {
	started map[string]bool // calls whose start is durable
	ended   map[string]bool // and those whose end was read back
	seq     int64           // records that were read back are there, up to this one
	hash    audit.Digest    // of that one
}

func (p *promises) clone() *promises {
	return &promises{maps.Clone(p.started), maps.Clone(p.ended), p.seq, p.hash}
}

// world is a state directory whose daemon is killed between any two writes of its own, so that the next one finds what there
// was at that moment.
type world struct {
	root  string
	dir   string
	lives int

	mu      sync.Mutex
	said    *promises
	until   int       // the write before which it is killed
	found   string    // the copy of the directory from then
	foundAs *promises // what had been said then
	noTable bool
	noDisk  bool
}

// write runs a write of the daemon.
func (w *world) write(fn func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.step()
	err := fn()
	w.step()
	return err
}

func (w *world) step() {
	if w.until--; w.until == 0 {
		w.copy()
	}
}

func (w *world) copy() {
	w.lives++
	w.found, w.foundAs = filepath.Join(w.root, fmt.Sprint(w.lives)), w.said.clone()
	if err := os.MkdirAll(w.found, 0o700); err != nil {
		panic(err)
	}
	for _, name := range []string{store.Name, store.Name + "-wal", "audit-0.journal", "audit-1.journal"} {
		if err := copyFile(filepath.Join(w.found, name), filepath.Join(w.dir, name)); err != nil {
			panic(err)
		}
	}
}

func copyFile(to, from string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

type worldStorage struct {
	audit.Storage
	w *world
}

func (s worldStorage) Write(ctx context.Context, fn func(context.Context, *sql.Conn) error) error {
	return s.w.write(func() error {
		if s.w.noTable {
			return errFaulty
		}
		return s.Storage.Write(ctx, fn)
	})
}

type worldJournal struct {
	audit.Journal
	w *world
}

func (j worldJournal) Append(records [][]byte) error {
	return j.w.write(func() error {
		if j.w.noDisk {
			return errFaulty
		}
		return j.Journal.Append(records)
	})
}

// TestWhatALogHasSaidIsTrueAfterACrashAtAnyMoment has random daemons work, fail and be killed, also while they recover.
func TestWhatALogHasSaidIsTrueAfterACrashAtAnyMoment(t *testing.T) {
	root := t.TempDir()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		if err := checks.Value.Set("5"); err != nil { // each takes up to half a second
			t.Fatal(err)
		}
		defer checks.Value.Set(checks.DefValue) //nolint:errcheck // it was that
	}
	rapid.Check(t, func(t *rapid.T) {
		w := &world{said: &promises{map[string]bool{}, map[string]bool{}, 0, nil}}
		var err error
		if w.root, err = os.MkdirTemp(root, ""); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(w.root)
		w.dir = filepath.Join(w.root, "0")
		for life := range rapid.IntRange(2, 5).Draw(t, "lives") {
			w.until, w.found, w.noTable, w.noDisk = rapid.IntRange(1, 40).Draw(t, "killed at"), "", false, false
			w.live(t, life)
			w.dir, w.said = w.found, w.foundAs
		}
		w.until = 0
		w.live(t, -1)
	})
}

// live is one daemon's life; a negative number lets it do nothing but recover.
func (w *world) live(t *rapid.T, life int) {
	s, err := store.Open(w.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	writer, err := s.Writer(false)
	if err != nil {
		t.Fatal(err)
	}
	journal, err := writer.Journal("audit")
	if err != nil {
		t.Fatal(err)
	}
	l, err := audit.Open(context.Background(), worldStorage{writer, w}, worldJournal{journal, w}, &audit.Options{
		Keep: rapid.SampledFrom([]time.Duration{0, time.Nanosecond}).Draw(t, "keep"),
		Key:  ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the table may be failing
	w.recovered(t, l)
	if life < 0 {
		return
	}
	var running, all []string
	n := 0
	name := func() string { n++; return fmt.Sprintf("%d-%d", life, n) }
	t.Repeat(map[string]func(*rapid.T){
		"start": func(t *rapid.T) {
			id := name()
			if err := l.Started(context.Background(), started(id)); err != nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				if !w.noTable && !w.noDisk {
					t.Fatal(err)
				}
				return
			}
			running, all = append(running, id), append(all, id)
			w.mu.Lock()
			w.said.started[id] = true
			w.mu.Unlock()
		},
		"finish": func(t *rapid.T) {
			if len(running) > 0 {
				i := rapid.IntRange(0, len(running)-1).Draw(t, "which")
				l.Finished(finished(running[i], tool.OutcomeOK))
				running = slices.Delete(running, i, i+1)
			}
		},
		"refuse many": func(*rapid.T) {
			for range 600 {
				l.Note(finished(name(), tool.OutcomeBlocked))
			}
		},
		"read": func(t *rapid.T) { w.read(t, l, all, running) },
		"prune": func(t *rapid.T) {
			if _, err := l.Prune(context.Background()); err != nil && !w.noTable {
				t.Fatal(err)
			}
		},
		"the table fails": func(*rapid.T) { w.mu.Lock(); w.noTable = true; w.mu.Unlock() },
		"the disk fails":  func(*rapid.T) { w.mu.Lock(); w.noDisk = true; w.mu.Unlock() },
		"both are well": func(t *rapid.T) {
			w.mu.Lock()
			w.noTable, w.noDisk = false, false
			w.mu.Unlock()
			w.read(t, l, all, running) // a call that begins while another notices that all is well may still be refused
		},
	})
	verify(t, l)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.found == "" {
		w.copy()
	}
	w.noTable, w.noDisk = false, false
}

// read reads the log back, as an operator does, and holds it to what it says.
func (w *world) read(t *rapid.T, l *audit.Log, all, running []string) {
	last, err := l.Query(context.Background(), &audit.Filter{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.noTable || w.noDisk {
		return
	}
	for _, e := range last { // none if all were pruned
		w.said.seq, w.said.hash = e.Seq, e.Hash
	}
	for _, id := range all {
		w.said.ended[id] = !slices.Contains(running, id)
	}
}

func verify(t *rapid.T, l *audit.Log) *audit.Report {
	r, err := l.Verify(context.Background())
	if err != nil || r.Fault != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	return r
}

// recovered holds a log that was opened to what the one before it said.
func (w *world) recovered(t *rapid.T, l *audit.Log) {
	r := verify(t, l)
	w.mu.Lock()
	said := w.said.clone()
	w.mu.Unlock()
	if r.Head.Seq < said.seq {
		t.Fatalf("the log ends with record %d and had %d", r.Head.Seq, said.seq)
	}
	starts, ends := map[string]bool{}, map[string]tool.Outcome{}
	err := l.Export(context.Background(), nil, func(page []audit.Entry) error {
		for _, e := range page {
			if e.Seq == said.seq && !bytes.Equal(e.Hash, said.hash) {
				t.Fatalf("record %d is another one", e.Seq)
			}
			if e.Kind == tool.RecordStarted {
				starts[e.CallID] = true
				continue
			}
			if _, twice := ends[e.CallID]; twice {
				t.Fatalf("call %s ended twice", e.CallID)
			}
			ends[e.CallID] = e.Outcome
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for id := range said.started {
		if r.Checkpoint == nil && !starts[id] {
			t.Fatalf("call %s ran and has no record", id)
		}
		if outcome, there := ends[id]; there && said.ended[id] && outcome == tool.OutcomeLost && r.Checkpoint == nil {
			t.Fatalf("call %s had ended, and is said to be lost", id)
		}
		if r.Checkpoint == nil && ends[id] == "" {
			t.Fatalf("call %s has no end", id)
		}
	}
	for id := range starts {
		if ends[id] == "" {
			t.Fatalf("call %s has no end", id)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said.seq, w.said.hash = r.Head.Seq, r.Head.Hash
	for id := range w.said.started {
		w.said.ended[id] = ends[id] != tool.OutcomeLost
	}
}
