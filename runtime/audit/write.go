package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	case len(g.entries)+l.taken >= maxPending, g.size+l.takenSize >= maxPendingSize:
		return nil, fmt.Errorf("%d audit records wait to be written", len(g.entries)+l.taken)
	}
	g.entries, g.size = append(g.entries, e), g.size+e.size()
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
	l.open, l.taken, l.takenSize = newGroup(), len(g.entries), g.size
	l.mu.Unlock()

	err := l.append(g)
	l.noteWriting(err)
	l.mu.Lock()
	l.taken, l.takenSize = 0, 0
	if g.err = err; err != nil {
		l.keepEnds(g)
	}
	l.mu.Unlock()
	close(g.done)
	return g.err
}

// append chains a group's entries and puts them into the journal.
func (l *Log) append(g *group) error {
	if l.waits >= maxPending {
		return fmt.Errorf("%d audit records wait to be stored", l.waits)
	}
	entries := g.entries
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
	l.waiting, l.waits, l.waitSize = append(l.waiting, entries), l.waits+len(entries), l.waitSize+g.size
	l.crowded.Store(l.isCrowded())
	return nil
}

// noteWriting tells the log when writing begins to fail, and when it works again.
func (l *Log) noteWriting(err error) {
	switch {
	case err == nil && l.unwritten.Swap(nil) != nil:
		l.log.Info("audit records can be written again")
	case err != nil && l.unwritten.Swap(&err) == nil:
		l.log.Error("audit records cannot be written", "error", err)
	}
}

// keepEnds puts back what nobody waits for. Its caller holds l.mu.
func (l *Log) keepEnds(g *group) {
	kept := slices.DeleteFunc(g.entries, func(e Entry) bool { return e.Kind == tool.RecordStarted })
	l.open.entries = append(kept, l.open.entries...)
	l.open.size = size(l.open.entries)
}
