package audit_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestRowsAreWhatWasRecordedHoweverManyThereAre(t *testing.T) {
	sum := audit.Digest(make([]byte, 32))
	for _, n := range []int{1, audit.ManyRows - 1, audit.ManyRows, audit.ManyRows + 1, 2*audit.ManyRows + 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := open(t, t.TempDir(), audit.Options{})
			want := make([]audit.Entry, n)
			for i := range want {
				text := func(column string) string { return fmt.Sprint(column, " ", i) }
				want[i] = audit.Entry{Seq: int64(i + 1), Time: time.Unix(int64(i), 1).UTC(), Hash: sum}
				if i%3 != 0 { // every third is as empty as it may be
					want[i] = audit.Entry{
						Seq: int64(i + 1), Time: time.Unix(int64(i), 1).UTC(), Kind: tool.RecordKind(text("kind")), CallID: text("call"), Agent: text("agent"),
						Session: text("session"), Via: tool.Via(text("via")), Tool: text("tool"), Source: tool.Source(text("source")),
						SourceName: text("name"), ArgsDigest: sum, Args: text("args"), Coerced: json.RawMessage(text("coerced")), Rule: text("rule"),
						Approval: text("approval"), By: text("by"), Outcome: tool.Outcome(text("outcome")), Code: tool.Code(text("code")),
						Duration: time.Duration(i), ResultDigest: sum, Hash: sum,
					}
				}
			}
			if stored, err := b.Insert(want); err != nil || stored != n {
				t.Fatal(stored, err)
			}
			got, err := b.Query(t.Context(), &audit.Filter{OldestFirst: true, Limit: n + 1})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARowThatFailsAmongManyLeavesNoneAndAllAreTriedAgain(t *testing.T) {
	for name, seq := range map[string]int64{
		"in the first statement": 5,
		"in a later statement":   audit.ManyRows + 5,
		"in a row of its own":    2*audit.ManyRows + 5,
	} {
		t.Run(name, func(t *testing.T) {
			const n = 2*audit.ManyRows + 10
			b := openOn(t, t.TempDir(), audit.Options{}, wrapped{})
			entries := make([]audit.Entry, n)
			for i := range entries {
				entries[i] = b.EntryOf(finished(fmt.Sprint(i), tool.OutcomeBlocked))
				entries[i].Seq, entries[i].Hash = int64(i+1), audit.Digest{byte(i)}
			}
			b.write(t, "CREATE TRIGGER fails BEFORE INSERT ON audit WHEN new.seq = "+fmt.Sprint(seq)+" BEGIN SELECT raise(FAIL, 'no'); END")
			if stored, err := b.Insert(entries); err == nil || stored != 0 {
				t.Errorf("%d rows stored, %v", stored, err)
			}
			var rows int
			if err := b.store.Read().QueryRow("SELECT count(*) FROM audit").Scan(&rows); err != nil || rows != 0 {
				t.Errorf("%d rows, %v", rows, err)
			}
			b.write(t, "DROP TRIGGER fails")
			if stored, err := b.Insert(entries); err != nil || stored != n {
				t.Errorf("%d rows stored, %v", stored, err)
			}
			b.shut(t)
		})
	}
}

func TestRecordsBehindARowThatFailsStayInOrder(t *testing.T) {
	b := openOn(t, t.TempDir(), audit.Options{}, wrapped{})
	const n = 3 * audit.ManyRows
	b.write(t, fmt.Sprintf("CREATE TRIGGER fails BEFORE INSERT ON audit WHEN new.seq = %d BEGIN SELECT raise(ABORT, 'no'); END", n/2))
	for i := range n {
		b.Note(finished(fmt.Sprint(i), tool.OutcomeBlocked))
	}
	if got, err := b.Query(t.Context(), nil); err != nil || len(got) != 0 || b.Blocked() == nil {
		t.Errorf("%d records, %v, blocked %v", len(got), err, b.Blocked())
	}
	b.write(t, "DROP TRIGGER fails")
	call(t, b, "next")
	if r := sound(t, b); r.Records != n+2 {
		t.Errorf("%d records", r.Records)
	}
	b.shut(t)
}
