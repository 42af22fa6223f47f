package audit_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/tool"
)

// faulty is a storage that fails on demand: with refuse before a transaction, with doubt after it was committed.
type faulty struct {
	audit.Storage
	refuse, doubt atomic.Bool
}

var errFaulty = errors.New("the disk is gone")

func (f *faulty) Write(ctx context.Context, fn func(context.Context, *sql.Conn) error) error {
	if f.refuse.Load() {
		return errFaulty
	}
	err := f.Storage.Write(ctx, fn)
	if f.doubt.Load() {
		err = errors.Join(err, errFaulty)
	}
	return err
}

// openFaulty opens a log that is the test's to close, on a storage that fails on demand.
func openFaulty(t testing.TB, dir string, opts audit.Options) (*books, *faulty) {
	t.Helper()
	f := &faulty{}
	return openOn(t, dir, opts, wrapped{storage: func(w audit.Storage) audit.Storage {
		f.Storage = w
		return f
	}}), f
}

// slow is a storage that waits while the gate is locked.
type slow struct {
	audit.Storage
	gate sync.Mutex
}

func (s *slow) Write(ctx context.Context, fn func(context.Context, *sql.Conn) error) error {
	s.gate.Lock()
	defer s.gate.Unlock()
	return s.Storage.Write(ctx, fn)
}

func TestCallsWaitForATableThatIsSlowerThanTheJournal(t *testing.T) {
	disk := &slow{}
	b := openOn(t, t.TempDir(), audit.Options{Arguments: true}, wrapped{storage: func(w audit.Storage) audit.Storage {
		disk.Storage = w
		return disk
	}})
	big := started("big")
	big.Arguments = []byte(`"` + strings.Repeat("x", 60_000) + `"`)
	disk.gate.Lock()
	for n := 0; !b.Crowded(); n++ {
		if err := b.Started(t.Context(), big); err != nil || n > 1000 {
			t.Fatal(n, err)
		}
	}
	waits := b.Head().Seq
	disk.gate.Unlock()
	call(t, b, "next")
	var rows int64
	if err := b.store.Read().QueryRow("SELECT count(*) FROM audit").Scan(&rows); err != nil || rows < waits {
		t.Errorf("a call began when the table had %d records of %d, %v", rows, waits, err)
	}
	b.shut(t)
}

func lost(t *testing.T, b *books) (ids []string) {
	t.Helper()
	got, err := b.Query(t.Context(), &audit.Filter{Outcome: tool.OutcomeLost, OldestFirst: true, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range got {
		ids = append(ids, e.CallID)
	}
	return ids
}

func TestACallThatRunsLongIsFoundByTheRecoveryOfMuchElse(t *testing.T) {
	dir := killed(t, func(b *books) {
		if err := b.Started(t.Context(), started("long")); err != nil {
			t.Fatal(err)
		}
		for i := range 1500 {
			b.Note(finished(fmt.Sprint("before", i), tool.OutcomeBlocked))
		}
	}, func(b *books) {
		for i := range 1500 {
			b.Note(finished(fmt.Sprint("after", i), tool.OutcomeBlocked))
		}
	})
	b := open(t, dir, audit.Options{})
	if got := lost(t, b); len(got) != 1 || got[0] != "long" {
		t.Errorf("outcome unknown: %q", got)
	}
	sound(t, b)
}

func TestAJournalThatWasFullIsUsedAgain(t *testing.T) {
	b, disk := openFaulty(t, t.TempDir(), audit.Options{Allow: true, Arguments: true})
	disk.refuse.Store(true)
	big := started("big")
	big.Arguments = []byte(`"` + strings.Repeat("x", 60_000) + `"`)
	for range 1200 { // 72 MB
		if err := b.Started(t.Context(), big); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Query(t.Context(), nil); err != nil { // which fails to store, so that the other file is used
			t.Fatal(err)
		}
	}
	disk.refuse.Store(false)
	if _, err := b.Query(t.Context(), nil); err != nil { // which stores all that waits
		t.Fatal(err)
	}
	before := b.Head().Seq
	if err := b.Started(t.Context(), big); err != nil {
		t.Fatal(err)
	}
	if b.Head().Seq == before {
		t.Error("the disk is well, and records are not written")
	}
	b.shut(t)
}

func TestOneRecordOfAnySizeHoldsNobodyUp(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{})
	r := finished("huge", tool.OutcomeError)
	r.Coerced = make([]string, 500_000)
	for i := range r.Coerced {
		r.Coerced[i] = fmt.Sprintf("arguments.list_of_many_numbers[%d]", i)
	}
	long := strings.Repeat("y", 20<<20)
	r.Session, r.Rule, r.By = long, long, long
	b.Finished(r)
	call(t, b, "small")
	if r := sound(t, b); r.Records != 3 {
		t.Errorf("%d records", r.Records)
	}
}

func TestACommitThatIsInDoubtIsNotRepeated(t *testing.T) {
	b, disk := openFaulty(t, t.TempDir(), audit.Options{})
	call(t, b, "1")
	disk.doubt.Store(true)
	if _, err := b.Query(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	disk.doubt.Store(false)
	call(t, b, "2")
	if r := sound(t, b); r.Records != 4 {
		t.Errorf("%d records", r.Records)
	}
	b.shut(t)
}

func TestWhatWaitsForTheDiskFitsIntoTheJournal(t *testing.T) {
	j := &flaky{}
	b := openOn(t, t.TempDir(), audit.Options{Arguments: true}, wrapped{journal: func(whole audit.Journal) audit.Journal {
		j.Journal = whole
		return j
	}})
	j.full.Store(true)
	big := finished("big", tool.OutcomeBlocked)
	big.Arguments = []byte(`"` + strings.Repeat("x", 60_000) + `"`)
	for range 1200 { // 72 MB
		b.Note(big)
	}
	j.full.Store(false)
	sound(t, b) // which writes what waits
	call(t, b, "1")
	sound(t, b)
	b.shut(t)
}

func TestRecordsThatTheTableDoesNotHaveAreToldAlsoWhenItHasGoneOn(t *testing.T) {
	dir := killed(t, func(b *books) { call(t, b, "1") }, func(b *books) { call(t, b, "2") })
	// A daemon that knows no journal goes on.
	b := open(t, t.TempDir(), audit.Options{})
	for i := range 10 {
		call(t, b, fmt.Sprint("other ", i))
	}
	b.shut(t)
	copyTo(t, b.dir, dir, "audit-0.journal", "audit-1.journal")
	var log logged
	open(t, b.dir, audit.Options{Logger: log.logger()})
	if n := strings.Count(log.String(), "does not continue the log"); n != 4 {
		t.Errorf("%d records are told:\n%s", n, log.String())
	}
}

func TestPruningBySizeWhenTheClockWasAhead(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{MaxSize: 500_000})
	for i := range 6000 {
		b.Note(finished(fmt.Sprint(i), tool.OutcomeBlocked))
	}
	written(t, b, 6000)
	b.write(t, "UPDATE audit SET time = time + ?", int64(1000*time.Hour)) // as if the clock had been ahead
	if n, err := b.Prune(t.Context()); err != nil || n == 0 {
		t.Errorf("%d records pruned, %v", n, err)
	}
}

func TestPruningLetsRecordsInMeanwhile(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{Keep: time.Nanosecond})
	for i := range 20 {
		call(t, b, fmt.Sprint(i))
	}
	if n, err := b.Prune(t.Context()); err != nil || n < 38 { // the last end may still be to be written
		t.Errorf("%d, %v", n, err)
	}
	sound(t, b)
}
