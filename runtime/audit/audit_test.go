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
	if opts.Key == nil {
		opts.Key = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	}
	l, err := audit.Open(t.Context(), w, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return &books{l, s, dir, opts.Key}
}

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

// written waits until the log has record n, which is not the first.
func written(t testing.TB, b *books, n int64) {
	t.Helper()
	err := b.Tail(t.Context(), &audit.Filter{After: n - 1}, func([]audit.Entry) error { return errReached })
	if !errors.Is(err, errReached) {
		t.Fatal(err)
	}
}

var errReached = errors.New("reached")

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

func TestTampering(t *testing.T) {
	for name, tt := range map[string]struct {
		query string
		seq   int64
		want  string
	}{
		"a changed outcome":         {"UPDATE audit SET outcome = 'error' WHERE seq = 4", 4, "changed"},
		"a changed time":            {"UPDATE audit SET time = time + 1 WHERE seq = 3", 3, "changed"},
		"a changed digest":          {"UPDATE audit SET args_digest = zeroblob(32) WHERE seq = 3", 3, "changed"},
		"text moved between fields": {"UPDATE audit SET agent = agent || session, session = '' WHERE seq = 3", 3, "changed"},
		"a removed record":          {"DELETE FROM audit WHERE seq = 3", 3, "missing"},
		"a removed first record":    {"DELETE FROM audit WHERE seq = 1", 1, "missing"},
		"a removed end":             {"DELETE FROM audit WHERE seq >= 5", 5, "missing"},
		"a removed and closed gap":  {"DELETE FROM audit WHERE seq = 3; UPDATE audit SET seq = -(seq - 1) WHERE seq > 3; UPDATE audit SET seq = -seq WHERE seq < 0", 3, "changed"},
		"two records exchanged":     {"UPDATE audit SET seq = 100 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = 100", 3, "moved"},
		"an added record":           {"INSERT INTO audit SELECT 7, time, kind, 'x', agent, session, via, tool, source, source_name, args_digest, args, coerced, rule, approval, answered_by, outcome, code, duration, result_digest, hash FROM audit WHERE seq = 6", 7, "changed"},
		"a forged checkpoint":       {"DELETE FROM audit WHERE seq <= 3; INSERT INTO audit_checkpoint SELECT 1, 3, zeroblob(32), 0, zeroblob(64)", 3, "signature"},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, t.TempDir(), audit.Options{})
			for i := range 3 {
				call(t, b, fmt.Sprint(i))
				written(t, b, int64(2*i+2))
			}
			sound(t, b)
			b.write(t, tt.query)
			r, err := b.Verify(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r.Fault == nil || r.Fault.Seq != tt.seq || !strings.Contains(r.Fault.Reason, tt.want) {
				t.Errorf("got %+v, want record %d %s", r.Fault, tt.seq, tt.want)
			}
		})
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

func TestQuery(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{})
	for i := range 5 {
		call(t, b, fmt.Sprint(i))
	}
	denied := finished("5", tool.OutcomeDenied)
	denied.Agent, denied.Tool = "night", "terminal"
	b.Finished(denied)
	written(t, b, 11)
	for name, tt := range map[string]struct {
		filter audit.Filter
		want   int
	}{
		"all":           {audit.Filter{}, 11},
		"by agent":      {audit.Filter{Agent: "night"}, 1},
		"by tool":       {audit.Filter{Tool: "terminal"}, 1},
		"by outcome":    {audit.Filter{Outcome: tool.OutcomeOK}, 5},
		"by kind":       {audit.Filter{Kind: tool.RecordStarted}, 5},
		"by call":       {audit.Filter{CallID: "3"}, 2},
		"since":         {audit.Filter{Since: time.Now().Add(time.Hour)}, 0},
		"until":         {audit.Filter{Until: time.Now().Add(time.Hour)}, 11},
		"a page":        {audit.Filter{Limit: 4}, 4},
		"what follows":  {audit.Filter{After: 9}, 2},
		"what precedes": {audit.Filter{Before: 3}, 2},
		"several terms": {audit.Filter{Agent: "desk", Outcome: tool.OutcomeDenied}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := b.Query(t.Context(), &tt.filter)
			if err != nil || len(got) != tt.want {
				t.Errorf("%d records, %v", len(got), err)
			}
		})
	}
	for _, bad := range []audit.Filter{{After: 1, Before: 2}, {Limit: -1}, {Limit: 1 << 20}} {
		if _, err := b.Query(t.Context(), &bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

func TestAnEntryComesBackFromItsJSON(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{})
	call(t, b, "1")
	written(t, b, 2)
	got, err := b.Query(t.Context(), &audit.Filter{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(&got[0])
	if err != nil {
		t.Fatal(err)
	}
	var e audit.Entry
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got[0], e); diff != "" {
		t.Error(diff)
	}
}

// A page is one message of gRPC, which has its bound.
func TestPagesAreBoundedInBytes(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{Arguments: true})
	const n = 300
	args := json.RawMessage(`{"text":"` + strings.Repeat(`\"`, 30<<10) + `"}`) // 60 KiB, of which every byte has to be escaped again
	for i := range n {
		b.Note(&tool.Record{Kind: tool.RecordFinished, CallID: fmt.Sprint(i), Agent: "desk", Tool: "wipe", Arguments: args})
	}
	written(t, b, n)
	tail, end := context.WithCancel(t.Context())
	defer end()
	reads := map[string]func(func([]audit.Entry) error) error{
		"export": func(fn func([]audit.Entry) error) error { return b.Export(t.Context(), nil, fn) },
		"tail":   func(fn func([]audit.Entry) error) error { return b.Tail(tail, &audit.Filter{After: 1}, fn) },
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			var next int64
			err := read(func(page []audit.Entry) error {
				raw, err := json.Marshal(page)
				if err != nil {
					return err
				}
				if len(raw) > 8<<20 {
					t.Errorf("a page of %d records has %d MiB", len(page), len(raw)>>20)
				}
				for i := range page {
					if next != 0 && page[i].Seq != next {
						t.Fatalf("record %d comes where %d should", page[i].Seq, next)
					}
					next = page[i].Seq + 1
				}
				if next == n+1 && name == "tail" {
					end()
				}
				return nil
			})
			if err != nil || next != n+1 {
				t.Errorf("it ended before record %d: %v", next, err)
			}
		})
	}
	if _, err := b.Query(t.Context(), &audit.Filter{Limit: n}); err == nil || !strings.Contains(err.Error(), "export them") {
		t.Errorf("a page of %d records: %v", n, err)
	}
	if page, err := b.Query(t.Context(), &audit.Filter{Limit: 50}); err != nil || len(page) != 50 {
		t.Errorf("a page of 50: %d, %v", len(page), err)
	}
}

func TestTailShowsWhatIsWrittenFromNowOn(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{})
	call(t, b, "before")
	written(t, b, 2)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	seen := make(chan string)
	done := make(chan error)
	head := b.Head().Seq
	go func() {
		done <- b.Tail(ctx, &audit.Filter{After: head, Kind: tool.RecordFinished}, func(page []audit.Entry) error {
			for _, e := range page {
				seen <- e.CallID
			}
			return nil
		})
	}()
	for _, id := range []string{"1", "2", "3"} {
		call(t, b, id)
		if got := <-seen; got != id {
			t.Errorf("got %s, want %s", got, id)
		}
	}
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestPruning(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{Keep: time.Nanosecond})
	for i := range 10 {
		call(t, b, fmt.Sprint(i))
	}
	written(t, b, 20)
	if err := b.Started(t.Context(), started("running")); err != nil {
		t.Fatal(err)
	}
	n, err := b.Prune(t.Context())
	if err != nil || n != 20 {
		t.Fatalf("%d, %v", n, err)
	}
	r := sound(t, b)
	if r.Records != 1 || r.First != 21 || r.Checkpoint == nil || r.Checkpoint.Seq != 20 {
		t.Errorf("%+v", r)
	}
	b.Finished(finished("running", tool.OutcomeOK))
	written(t, b, 22)
	if n, err := b.Prune(t.Context()); err != nil || n != 2 {
		t.Fatalf("%d, %v", n, err)
	}
	b.shut(t)
	b = open(t, b.dir, audit.Options{}) // the chain goes on from the checkpoint
	call(t, b, "next")
	written(t, b, 24)
	if r := sound(t, b); r.First != 23 {
		t.Errorf("%+v", r)
	}
	b.write(t, "UPDATE audit_checkpoint SET seq = 21")
	if r, err := b.Verify(t.Context()); err != nil || r.Fault == nil {
		t.Error("a moved checkpoint was accepted", err)
	}
}

func TestPruningBySize(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{MaxSize: 500_000})
	for i := range 6000 {
		b.Note(finished(fmt.Sprint(i), tool.OutcomeBlocked))
	}
	written(t, b, 6000)
	if _, err := b.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	size, err := b.Size(t.Context())
	if err != nil || size > 500_000 {
		t.Errorf("%d bytes, %v", size, err)
	}
	var free int
	if err := b.store.Read().QueryRow("SELECT freelist_count FROM pragma_freelist_count").Scan(&free); err != nil || free > 0 {
		t.Errorf("%d pages are not given back to the disk, %v", free, err)
	}
	sound(t, b)
}

func TestNoRecordNoCall(t *testing.T) {
	var log bytes.Buffer
	for name, allow := range map[string]bool{"by default a start without a record fails": false, "an operator may allow it": true} {
		t.Run(name, func(t *testing.T) {
			b := open(t, t.TempDir(), audit.Options{Allow: allow, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			call(t, b, "1")
			written(t, b, 2)
			b.write(t, "ALTER TABLE audit RENAME TO audit_gone")
			err := b.Started(t.Context(), started("2"))
			if allow != (err == nil) {
				t.Errorf("got %v", err)
			}
			b.Finished(finished("3", tool.OutcomeBlocked)) // is kept until it can be written
			b.write(t, "ALTER TABLE audit_gone RENAME TO audit")
			call(t, b, "4")
			b.shut(t)
			b = open(t, b.dir, audit.Options{})
			if r := sound(t, b); r.Records != 5 {
				t.Errorf("%d records", r.Records)
			}
			if !strings.Contains(log.String(), "cannot be written") {
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
