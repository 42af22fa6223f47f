package audit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/tool"
)

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
