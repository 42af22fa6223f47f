package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/store"
	"github.com/hermesd/hermesd/runtime/tool"
)

// steady is a journal that is never turned, so that all that was ever written to it is there.
type steady struct{ audit.Journal }

func (steady) Turn() {}
func (steady) Drop() {}

// killed is the folder that a daemon leaves whose table has what is stored only, and whose journal has what follows, too.
func killed(t *testing.T, stored, follows func(*books)) string {
	t.Helper()
	b := openOn(t, t.TempDir(), audit.Options{}, wrapped{journal: func(j audit.Journal) audit.Journal { return steady{j} }})
	defer b.shut(t)
	stored(b)
	sound(t, b)
	left := t.TempDir()
	copyTo(t, left, b.dir, store.Name, store.Name+"-wal")
	follows(b)
	sound(t, b) // so that the last ends are written, too
	copyTo(t, left, b.dir, "audit-0.journal", "audit-1.journal")
	return left
}

func copyTo(t *testing.T, to, from string, names ...string) {
	t.Helper()
	for _, name := range names {
		raw, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatAKilledDaemonHadInItsJournalIsInTheLog(t *testing.T) {
	dir := killed(t, func(b *books) { call(t, b, "1") }, func(b *books) {
		call(t, b, "2")
		if err := b.Started(t.Context(), started("running")); err != nil {
			t.Fatal(err)
		}
	})
	for range 2 { // the second time there is nothing left to do
		b := open(t, dir, audit.Options{})
		if r := sound(t, b); r.Records != 6 {
			t.Errorf("%d records", r.Records)
		}
		got, err := b.Query(t.Context(), &audit.Filter{CallID: "running"})
		if err != nil || len(got) != 2 || got[0].Outcome != tool.OutcomeLost {
			t.Errorf("%+v, %v", got, err)
		}
		b.shut(t)
	}
}

func TestRecordsThatContinueAnotherTableAreToldToTheLog(t *testing.T) {
	dir := killed(t, func(b *books) { call(t, b, "1") }, func(b *books) { call(t, b, "2") })
	b := open(t, t.TempDir(), audit.Options{})
	call(t, b, "of another daemon")
	b.shut(t)
	copyTo(t, b.dir, dir, "audit-0.journal", "audit-1.journal")
	var log logged
	b = open(t, b.dir, audit.Options{Logger: log.logger()})
	call(t, b, "3")
	if r := sound(t, b); r.Records != 4 {
		t.Errorf("%d records", r.Records)
	}
	if text := log.String(); strings.Count(text, "does not continue the log") != 4 || !strings.Contains(text, "replaced by an older one") {
		t.Errorf("the log says:\n%s", text)
	}
}
