package audit

import (
	"context"
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

// write writes groups that nobody writes for himself.
func (l *Log) write(ctx context.Context) {
	defer l.timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-l.timer.C:
		}
		l.writing.Lock()
		err := l.writeGroup()
		l.writing.Unlock()
		if err != nil { // what nobody waits for is kept and tried again
			l.timer.Reset(time.Second)
		}
	}
}

// writeGroup chains the open group and makes it durable. Its caller holds l.writing.
func (l *Log) writeGroup() error {
	l.mu.Lock()
	g := l.open
	if len(g.entries) == 0 {
		l.mu.Unlock()
		return nil
	}
	l.open = newGroup()
	l.mu.Unlock()

	if err := l.append(g.entries); err != nil {
		l.failed(g, err)
	} else if l.unwritten.Swap(nil) != nil {
		l.log.Info("audit records can be written again")
	}
	close(g.done)
	return g.err
}

// append chains entries and puts them into the journal.
func (l *Log) append(entries []Entry) error {
	if l.waits >= maxPending {
		return fmt.Errorf("%d audit records wait to be stored", l.waits)
	}
	lines := make([][]byte, len(entries))
	head := l.head
	for i := range entries {
		head = l.chain.link(head, &entries[i])
		lines[i] = entries[i].line()
	}
	if err := l.journal.Append(lines); err != nil {
		return err
	}
	l.head = head
	if l.waits == 0 {
		l.due.Reset(gather)
	}
	l.waiting, l.waits = append(l.waiting, entries), l.waits+len(entries)
	return nil
}

// failed tells those who wait and keeps what nobody waits for.
func (l *Log) failed(g *group, err error) {
	g.err = err
	if l.unwritten.Swap(&err) == nil {
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
