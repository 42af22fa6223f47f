package audit

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// keep takes records from the journal into the table, and looks after the table.
func (l *Log) keep(ctx context.Context) {
	defer l.due.Stop()
	maintain := time.NewTicker(l.options.Maintain)
	defer maintain.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-maintain.C:
			l.maintain(ctx)
		case <-l.due.C:
			if l.store() != nil {
				l.due.Reset(time.Second)
			}
		}
	}
}

// sync brings all that has happened so far into the table. If it cannot, what is there is still to be read.
func (l *Log) sync() error {
	l.writing.Lock()
	err := l.writeGroup()
	l.writing.Unlock()
	return errors.Join(err, l.store())
}

// retryStoring stores what waits if that failed before, and says why it fails still: the journal has room for a while only,
// so nothing new begins.
func (l *Log) retryStoring() error {
	err := l.unstored.Load()
	if err == nil || l.options.Allow {
		return nil
	}
	if l.storing.TryLock() {
		defer l.storing.Unlock()
		return l.storeWaiting()
	}
	return *err
}

func (l *Log) store() error {
	l.storing.Lock()
	defer l.storing.Unlock()
	return l.storeWaiting()
}

// storeWaiting takes over what waits in the journal. Its caller holds l.storing.
func (l *Log) storeWaiting() error {
	l.writing.Lock()
	batch := slices.Concat(l.waiting...)
	l.waiting, l.waits = nil, 0
	if len(batch) > 0 {
		l.journal.Turn()
	}
	l.writing.Unlock()
	if len(batch) == 0 {
		return nil
	}
	stored, err := l.insert(batch)
	l.writing.Lock()
	defer l.writing.Unlock()
	if err != nil {
		rest := batch[stored:]
		l.waiting, l.waits = slices.Insert(l.waiting, 0, rest), l.waits+len(rest)
		if l.unstored.Swap(&err) == nil {
			l.log.Error("audit records cannot be stored; they wait in the journal", "records", l.waits, "error", err)
		}
		return err
	}
	l.journal.Drop()
	if l.unstored.Swap(nil) != nil {
		l.log.Info("audit records can be stored again")
	}
	return nil
}

// insert adds chained entries to the table, a stretch at a time, since others wait to write, too. It returns how many are
// there.
func (l *Log) insert(entries []Entry) (stored int, err error) {
	for stored < len(entries) {
		part := entries[stored:min(stored+stretch, len(entries))]
		if err := l.insertStretch(part); err != nil {
			return stored, err
		}
		stored += len(part)
	}
	return stored, nil
}

func (l *Log) insertStretch(entries []Entry) error {
	last := entries[len(entries)-1]
	settle := last.Seq-l.settledAt >= settleEvery
	err := l.storage.Write(context.Background(), func(ctx context.Context, c *sql.Conn) error {
		for i := range entries {
			if _, err := l.stmt.ExecContext(ctx, entries[i].values()...); err != nil {
				return err
			}
		}
		if settle {
			return setSettled(ctx, c, l.settled())
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.stored = Head{last.Seq, last.Hash}
	if settle {
		l.settledAt = last.Seq
	}
	for i := range entries {
		switch e := &entries[i]; e.Kind {
		case tool.RecordStarted:
			l.unended[e.CallID] = e.Seq
		case tool.RecordFinished:
			delete(l.unended, e.CallID)
		}
	}
	l.mu.Lock()
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	return nil
}

// settled is the last record of the table before the first call that is still unfinished there.
func (l *Log) settled() int64 {
	seq := l.stored.Seq
	for _, started := range l.unended {
		seq = min(seq, started-1)
	}
	return seq
}

func setSettled(ctx context.Context, c *sql.Conn, seq int64) error {
	_, err := c.ExecContext(ctx, "INSERT OR REPLACE INTO audit_settled (id, seq) VALUES (1, ?)", seq)
	return err
}

// storedHead is the end of the chain in the table.
func (l *Log) storedHead() Head {
	l.storing.Lock()
	defer l.storing.Unlock()
	return l.stored
}
