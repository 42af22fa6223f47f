package audit

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
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

// makeRoom has a call wait while so much waits for the table that the journal would be full soon. If it could not be stored
// before, it is tried again, and the error says why that fails still: nothing new begins.
func (l *Log) makeRoom() error {
	err := l.unstored.Load()
	switch {
	case err == nil && l.crowded.Load():
		if err := l.store(); err != nil && !l.options.Allow {
			return err
		}
	case err != nil && !l.options.Allow:
		if !l.storing.TryLock() {
			return *err
		}
		defer l.storing.Unlock()
		return l.storeWaiting()
	}
	return nil
}

func (l *Log) store() error {
	l.storing.Lock()
	defer l.storing.Unlock()
	return l.storeWaiting()
}

// storeWaiting takes over what waits in the journal. Its caller holds l.storing.
func (l *Log) storeWaiting() error {
	l.writing.Lock()
	parts := l.backlog.take()
	l.crowded.Store(false)
	if len(parts) > 0 {
		l.journal.Turn()
	}
	l.writing.Unlock()
	if len(parts) == 0 {
		return nil
	}
	rest, err := l.insertParts(parts)
	l.writing.Lock()
	defer l.writing.Unlock()
	if err != nil {
		l.backlog.putBack(rest)
		l.crowded.Store(l.backlog.crowded())
		if l.unstored.Swap(&err) == nil {
			l.log.Error("audit records cannot be stored; they wait in the journal", "records", l.backlog.n, "error", err)
		}
		return err
	}
	l.backlog.free(parts)
	l.journal.Drop()
	if l.backlog.n == 0 { // what is written next finds an empty file, however full the last one became while nothing could be stored
		l.journal.Turn()
		l.journal.Drop()
	}
	if l.unstored.Swap(nil) != nil {
		l.log.Info("audit records can be stored again")
	}
	return nil
}

// insertParts adds chained entries to the table. It returns those that are not there if it fails.
func (l *Log) insertParts(parts [][]Entry) (rest [][]Entry, err error) {
	for i, part := range parts {
		if stored, err := l.insert(part); err != nil {
			return append([][]Entry{part[stored:]}, parts[i+1:]...), err
		}
	}
	return nil, nil
}

// insert adds chained entries to the table, a stretch at a time, since others wait to write, too. It returns how many are
// there.
func (l *Log) insert(entries []Entry) (stored int, err error) {
	for stored < len(entries) {
		part := entries[stored:min(stored+stretch, len(entries))]
		err := l.insertStretch(part)
		if err != nil {
			if part = l.already(part); len(part) == 0 {
				return stored, err
			}
		}
		l.took(part, err == nil)
		stored += len(part)
	}
	return stored, nil
}

func (l *Log) insertStretch(entries []Entry) error {
	return l.storage.Write(context.Background(), func(ctx context.Context, c *sql.Conn) error {
		if err := l.rows.insert(entries); err != nil {
			return err
		}
		if l.settles(entries) {
			return setSettled(ctx, c, l.settled())
		}
		return nil
	})
}

// already are the entries that the table has in spite of an error: a commit may fail after it was made.
func (l *Log) already(entries []Entry) []Entry {
	head, err := l.tableHead(context.Background())
	n := head.Seq - entries[0].Seq + 1
	if err != nil || n <= 0 || n > int64(len(entries)) || !bytes.Equal(head.Hash, entries[n-1].Hash) {
		return nil
	}
	return entries[:n]
}

// settles reports whether the settled mark moves when entries are added.
func (l *Log) settles(entries []Entry) bool {
	return entries[len(entries)-1].Seq-l.settledAt >= settleEvery
}

// took says that the table has entries at its end.
func (l *Log) took(entries []Entry, whole bool) {
	last := entries[len(entries)-1]
	if whole && l.settles(entries) {
		l.settledAt = last.Seq
	}
	l.stored = Head{last.Seq, last.Hash}
	for i := range entries {
		l.note(&entries[i])
	}
	l.mu.Lock()
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
}

// note keeps in mind which calls of the table run.
func (l *Log) note(e *Entry) {
	switch e.Kind {
	case tool.RecordStarted:
		l.unended[e.CallID] = e.Seq
	case tool.RecordFinished:
		delete(l.unended, e.CallID)
	}
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
