package audit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/store"
	"github.com/hermesd/hermesd/runtime/tool"
)

// books are a store with its audit.
type books struct {
	*audit.Log
	store *store.Store
	dir   string
	key   ed25519.PrivateKey
}

func open(t testing.TB, dir string, opts audit.Options) *books {
	t.Helper()
	b := openOn(t, dir, opts, wrapped{})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// wrapped is what a test puts around the storage and the journal of a log; nil leaves them as they are.
type wrapped struct {
	storage func(audit.Storage) audit.Storage
	journal func(audit.Journal) audit.Journal
}

// openOn opens a log that is the test's to close.
func openOn(t testing.TB, dir string, opts audit.Options, around wrapped) *books {
	t.Helper()
	s, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w, err := s.Writer(false)
	if err != nil {
		t.Fatal(err)
	}
	j, err := w.Journal("audit")
	if err != nil {
		t.Fatal(err)
	}
	var storage audit.Storage = w
	if around.storage != nil {
		storage = around.storage(w)
	}
	var journal audit.Journal = j
	if around.journal != nil {
		journal = around.journal(j)
	}
	if opts.Key == nil {
		opts.Key = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	}
	l, err := audit.Open(t.Context(), storage, journal, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return &books{l, s, dir, opts.Key}
}

// logged is what the daemon's log was told.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// shut ends both, as a daemon does that stops.
func (b *books) shut(t testing.TB) {
	t.Helper()
	if err := errors.Join(b.Close(), b.store.Close()); err != nil {
		t.Fatal(err)
	}
}

func started(id string) *tool.Record {
	return &tool.Record{Kind: tool.RecordStarted, CallID: id, Agent: "desk", Session: "s", Via: tool.ViaBridge, Tool: "files_read",
		Source: tool.SourcePlugin, SourceName: "files", Arguments: json.RawMessage(`{"path":"a"}`)}
}

func finished(id string, o tool.Outcome) *tool.Record {
	r := started(id)
	r.Kind, r.Outcome, r.Duration, r.Result = tool.RecordFinished, o, time.Millisecond, tool.TextResult("done")
	return r
}

func call(t testing.TB, b *books, id string) {
	t.Helper()
	if err := b.Started(t.Context(), started(id)); err != nil {
		t.Fatal(err)
	}
	b.Finished(finished(id, tool.OutcomeOK))
}

// written has all that was recorded so far be in the table, of which n is the last.
func written(t testing.TB, b *books, n int64) {
	t.Helper()
	got, err := b.Query(t.Context(), &audit.Filter{Limit: 1})
	if err != nil || len(got) != 1 || got[0].Seq != n {
		t.Fatalf("got %+v, %v, want record %d", got, err, n)
	}
}

func sound(t testing.TB, b *books) *audit.Report {
	t.Helper()
	r, err := b.Verify(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if r.Fault != nil {
		t.Fatalf("record %d %s", r.Fault.Seq, r.Fault.Reason)
	}
	return r
}

func (b *books) write(t testing.TB, query string, args ...any) {
	t.Helper()
	err := b.store.Write(t.Context(), func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, query, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAStartIsThereWhenStartedReturns(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{})
	if err := b.Started(t.Context(), started("1")); err != nil {
		t.Fatal(err)
	}
	got, err := b.Query(t.Context(), nil)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	e := got[0]
	if e.Seq != 1 || e.CallID != "1" || e.Tool != "files_read" || len(e.ArgsDigest) != 32 || e.Args != "" || e.Outcome != "" {
		t.Errorf("%+v", e)
	}
}

func TestARecordKeepsAllThatItsWriterKnows(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{Arguments: true, Mask: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }})
	r := finished("1", tool.OutcomeDenied)
	r.Arguments = json.RawMessage(`{"password":"hunter2"}`)
	r.Coerced, r.Rule, r.Approval, r.By, r.Code = []string{"arguments.n"}, "no (c.hcl:3)", "A1", "ann, console", tool.DeniedByRule
	b.Finished(r)
	b.shut(t)
	b = open(t, b.dir, audit.Options{})
	got, err := b.Query(t.Context(), nil)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	want := audit.Entry{
		Seq: 1, Kind: tool.RecordFinished, CallID: "1", Agent: "desk", Session: "s", Via: tool.ViaBridge, Tool: "files_read",
		Source: tool.SourcePlugin, SourceName: "files", Args: `{"password":"***"}`, Coerced: json.RawMessage(`["arguments.n"]`),
		Rule: "no (c.hcl:3)", Approval: "A1", By: "ann, console", Outcome: tool.OutcomeDenied, Code: tool.DeniedByRule, Duration: time.Millisecond,
		Time: got[0].Time, ArgsDigest: got[0].ArgsDigest, ResultDigest: got[0].ResultDigest, Hash: got[0].Hash,
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
	if len(want.ArgsDigest) != 32 || len(want.ResultDigest) != 32 || time.Since(want.Time) > time.Minute {
		t.Errorf("%+v", want)
	}
}

func TestCallsAtOnceMakeOneSoundChain(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 50 {
				call(t, b, fmt.Sprintf("%d-%d", i, j))
			}
		})
	}
	wg.Wait()
	b.shut(t)
	b = open(t, b.dir, audit.Options{})
	if r := sound(t, b); r.Records != 16*50*2 {
		t.Errorf("%d records", r.Records)
	}
}

func TestCallsThatWereRunningAreOutcomeUnknownAfterTheNextOpen(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{})
	call(t, b, "ended")
	for _, id := range []string{"lost-1", "lost-2"} {
		if err := b.Started(t.Context(), started(id)); err != nil {
			t.Fatal(err)
		}
	}
	b.shut(t)
	for range 2 { // the second open finds nothing more to settle
		b = open(t, b.dir, audit.Options{})
		got, err := b.Query(t.Context(), &audit.Filter{Outcome: tool.OutcomeLost, OldestFirst: true})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, e := range got {
			ids = append(ids, e.CallID)
			if e.Kind != tool.RecordFinished || e.Code != tool.OutcomeUnknown || e.Tool != "files_read" {
				t.Errorf("%+v", e)
			}
		}
		if diff := cmp.Diff([]string{"lost-1", "lost-2"}, ids); diff != "" {
			t.Error(diff)
		}
		sound(t, b)
		b.shut(t)
	}
}

func TestACallThatRunsWhileTheMarkMovesIsStillFound(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{})
	if err := b.Started(t.Context(), started("long")); err != nil {
		t.Fatal(err)
	}
	for i := range 1500 {
		b.Note(finished(fmt.Sprint(i), tool.OutcomeBlocked))
	}
	written(t, b, 1501)
	b.shut(t)
	b = open(t, b.dir, audit.Options{})
	got, err := b.Query(t.Context(), &audit.Filter{CallID: "long"})
	if err != nil || len(got) != 2 || got[0].Outcome != tool.OutcomeLost {
		t.Errorf("%+v, %v", got, err)
	}
}

// flaky is a journal whose disk is full for a while.
type flaky struct {
	audit.Journal
	full atomic.Bool
}

func (j *flaky) Append(records [][]byte) error {
	if j.full.Load() {
		return errors.New("disk full")
	}
	return j.Journal.Append(records)
}

func TestNoRecordNoCall(t *testing.T) {
	for name, allow := range map[string]bool{"by default a start without a record fails": false, "an operator may allow it": true} {
		t.Run(name, func(t *testing.T) {
			var log logged
			j := &flaky{}
			dir := t.TempDir()
			b := openOn(t, dir, audit.Options{Allow: allow, Logger: log.logger()}, wrapped{journal: func(whole audit.Journal) audit.Journal {
				j.Journal = whole
				return j
			}})
			call(t, b, "1")
			written(t, b, 2)
			j.full.Store(true)
			err := b.Started(t.Context(), started("2"))
			if allow != (err == nil) || allow != (b.Blocked() == nil) {
				t.Errorf("got %v, blocked %v", err, b.Blocked())
			}
			b.Finished(finished("3", tool.OutcomeBlocked)) // is kept until it can be written
			j.full.Store(false)
			call(t, b, "4")
			if err := b.Blocked(); err != nil {
				t.Error(err)
			}
			b.shut(t)
			b = open(t, dir, audit.Options{})
			if r := sound(t, b); r.Records != 5 {
				t.Errorf("%d records", r.Records)
			}
			if !strings.Contains(log.String(), "cannot be written") {
				t.Errorf("nothing in the log:\n%s", log.String())
			}
		})
	}
}

func TestWhileTheTableCannotBeWrittenNothingNewBeginsAndNothingIsLost(t *testing.T) {
	for name, again := range map[string]func(*testing.T, *books){
		"until it can be written again": func(t *testing.T, b *books) {
			b.write(t, "ALTER TABLE audit_gone RENAME TO audit")
			call(t, b, "2")
			if err := b.Blocked(); err != nil {
				t.Error(err)
			}
			b.shut(t)
		},
		"until the next daemon": func(t *testing.T, b *books) {
			if err := b.Close(); err == nil {
				t.Error("the log ended in peace")
			}
			b.write(t, "ALTER TABLE audit_gone RENAME TO audit")
			if err := b.store.Close(); err != nil {
				t.Error(err)
			}
			b = open(t, b.dir, audit.Options{})
			call(t, b, "2")
			b.shut(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log logged
			b := openOn(t, t.TempDir(), audit.Options{Logger: log.logger()}, wrapped{})
			b.write(t, "ALTER TABLE audit RENAME TO audit_gone")
			call(t, b, "1") // its records are durable before the table is known to be gone
			if _, err := b.Query(t.Context(), nil); err == nil {
				t.Error("the table could be read")
			}
			if err := b.Started(t.Context(), started("refused")); err == nil || b.Blocked() == nil {
				t.Errorf("a call began: %v, blocked %v", err, b.Blocked())
			}
			b.Finished(finished("noted", tool.OutcomeBlocked))
			again(t, b)
			b = open(t, b.dir, audit.Options{})
			if r := sound(t, b); r.Records != 5 {
				t.Errorf("%d records", r.Records)
			}
			if !strings.Contains(log.String(), "they wait in the journal") {
				t.Errorf("nothing in the log:\n%s", log.String())
			}
		})
	}
}

func TestAClosedLogTakesNothing(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{})
	b.shut(t)
	if err := b.Started(t.Context(), started("1")); err == nil {
		t.Error("a start was taken")
	}
}

func BenchmarkStarted(b *testing.B) {
	l := open(b, b.TempDir(), audit.Options{})
	r := started("01J00000000000000000000000")
	for b.Loop() {
		if err := l.Started(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}
