package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

var errClosed = errors.New("the audit is closed: the daemon is stopping")

// add puts a record into the open group.
func (l *Log) add(r *tool.Record) (*group, error) {
	e := l.entry(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.open
	switch {
	case l.closed:
		return nil, errClosed
	case len(g.entries) >= maxPending:
		return nil, fmt.Errorf("%d audit records wait to be written", len(g.entries))
	}
	g.entries = append(g.entries, e)
	if len(g.entries) == 1 {
		l.timer.Reset(linger)
	}
	return g, nil
}

// hurry has the open group written as soon as the running write is over.
func (l *Log) hurry() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run writes groups that nobody writes for himself.
func (l *Log) run(ctx context.Context) {
	defer close(l.ended)
	defer l.timer.Stop()
	maintain := time.NewTicker(l.options.Maintain)
	defer maintain.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-maintain.C:
			l.maintain(ctx)
			continue
		case <-l.wake:
		case <-l.timer.C:
		}
		l.writing.Lock()
		err := l.write()
		l.writing.Unlock()
		if err != nil { // what nobody waits for is kept and tried again
			l.timer.Reset(time.Second)
		}
	}
}

// write takes the open group and makes it durable. Its caller holds l.writing.
func (l *Log) write() error {
	l.mu.Lock()
	g := l.open
	if len(g.entries) == 0 {
		l.mu.Unlock()
		return nil
	}
	l.open = newGroup()
	l.mu.Unlock()

	head, err := l.commit(g.entries)
	if err != nil {
		l.failed(g, err)
	} else {
		l.wrote(g, head)
	}
	close(g.done)
	return g.err
}

// commit chains entries and inserts them.
func (l *Log) commit(entries []Entry) (Head, error) {
	head := l.head
	for i := range entries {
		e := &entries[i]
		e.Seq = head.Seq + 1
		e.Hash = l.chain.hash(head.Hash, e)
		head = Head{e.Seq, e.Hash}
	}
	settle := head.Seq-l.settledAt >= settleEvery
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
	if err == nil && settle {
		l.settledAt = head.Seq
	}
	return head, err
}

// settled is the last record before the first call that is still unfinished.
func (l *Log) settled() int64 {
	seq := l.head.Seq
	for _, started := range l.unended {
		seq = min(seq, started-1)
	}
	return seq
}

func setSettled(ctx context.Context, c *sql.Conn, seq int64) error {
	_, err := c.ExecContext(ctx, "INSERT OR REPLACE INTO audit_settled (id, seq) VALUES (1, ?)", seq)
	return err
}

func (l *Log) wrote(g *group, head Head) {
	l.head = head
	for i := range g.entries {
		switch e := &g.entries[i]; e.Kind {
		case tool.RecordStarted:
			l.unended[e.CallID] = e.Seq
		case tool.RecordFinished:
			delete(l.unended, e.CallID)
		}
	}
	if l.fault.Swap(nil) != nil {
		l.log.Info("audit records can be written again")
	}
	l.mu.Lock()
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
}

// failed tells those who wait and keeps what nobody waits for.
func (l *Log) failed(g *group, err error) {
	g.err = err
	if l.fault.Swap(&err) == nil {
		l.log.Error("audit records cannot be written", "error", err)
	}
	var kept []Entry
	for _, e := range g.entries {
		if e.Kind != tool.RecordStarted {
			kept = append(kept, e)
		}
	}
	l.mu.Lock()
	l.open.entries = append(kept, l.open.entries...)
	l.mu.Unlock()
}
