package audit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestACallThatNobodyIsAheadOfWritesItsStartItself(t *testing.T) {
	b := open(t, t.TempDir(), audit.Options{})
	b.EndWork()
	b.Finished(finished("1", tool.OutcomeBlocked))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := b.Started(ctx, started("2")); err != nil {
		t.Fatal(err)
	}
	if head := b.Head(); head.Seq != 2 {
		t.Errorf("%d records are durable", head.Seq)
	}
}

func TestAnEndThatNobodyWaitsForIsWrittenSoonAndTriedAgainEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &flaky{}
		b := openOn(t, t.TempDir(), audit.Options{}, wrapped{journal: func(whole audit.Journal) audit.Journal {
			j.Journal = whole
			return j
		}})
		defer b.shut(t)
		durable := func(after time.Duration, want int64) {
			t.Helper()
			time.Sleep(after) // of the bubble's time
			synctest.Wait()
			if head := b.Head(); head.Seq != want {
				t.Errorf("%d records are durable, want %d", head.Seq, want)
			}
		}
		b.Finished(finished("1", tool.OutcomeBlocked))
		durable(time.Second, 1)
		call(t, b, "2") // its start is written at once
		durable(0, 2)
		durable(time.Second, 3)
		j.full.Store(true)
		b.Finished(finished("3", tool.OutcomeBlocked))
		if err := b.Started(t.Context(), started("refused")); err == nil {
			t.Error("a call began without a record")
		}
		b.Finished(finished("4", tool.OutcomeBlocked))
		durable(time.Second, 3)
		j.full.Store(false)
		durable(2*time.Second, 5)
	})
}
