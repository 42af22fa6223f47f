package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/tool"
)

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
