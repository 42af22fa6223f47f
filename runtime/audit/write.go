package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// group is what the next write will take.
type group struct {
	entries []Entry
	size    int           // of them, in bytes
	timed   bool          // the timer will have it written
	written bool          // it is durable or has failed with err
	err     error         // read by who knows that it is written
	done    chan struct{} // closed when it is written; nil while nobody waits for that
}

// lines are what a group's entries are in the journal; kept to be used again.
type lines struct {
	all  []byte
	each [][]byte
}

const (
	// spareEntries and spareBytes are how much room of a group is kept to be used again.
	spareEntries = 1 << 10
	spareBytes   = 1 << 20
)

var errClosed = errors.New("the audit is closed: the daemon is stopping")

// add puts a record into the open group. One that nobody waits for is written after a while.
func (l *Log) add(r *tool.Record, waits bool) (*group, error) {
	e := l.entry(r)
	size := e.size()
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.open
	switch {
	case l.closed:
		return nil, errClosed
	case len(g.entries)+l.taken >= maxPending, g.size+l.takenSize >= maxPendingSize:
		return nil, fmt.Errorf("%d audit records wait to be written", len(g.entries)+l.taken)
	}
	g.entries, g.size = append(g.entries, e), g.size+size
	if !waits && !g.timed {
		g.timed = true
		l.timer.Reset(linger)
	}
	return g, nil
}

// done returns what is closed when a group is written.
func (l *Log) done(g *group) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.done == nil {
		g.done = make(chan struct{})
		if g.written {
			close(g.done)
		}
	}
	return g.done
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
	l.open, l.written = &group{entries: l.written}, nil
	l.taken, l.takenSize = len(g.entries), g.size
	l.mu.Unlock()

	err := l.append(g)
	l.noteWriting(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken, l.takenSize = 0, 0
	switch {
	case err != nil:
		l.keepEnds(g)
	case cap(g.entries) <= spareEntries:
		clear(g.entries)
		l.written = g.entries[:0]
	}
	g.entries, g.err, g.written = nil, err, true
	if g.done != nil {
		close(g.done)
	}
	return err
}

// append chains a group's entries and puts them into the journal.
func (l *Log) append(g *group) error {
	if l.backlog.n >= maxPending {
		return fmt.Errorf("%d audit records wait to be stored", l.backlog.n)
	}
	head, all, each := l.head, slices.Grow(l.lines.all[:0], g.size), l.lines.each[:0]
	for i := range g.entries {
		begin := len(all)
		head, all = l.chain.link(head, &g.entries[i], all)
		each = append(each, all[begin:])
	}
	err := l.journal.Append(each)
	if l.lines = (lines{all, each}); cap(all) > spareBytes {
		l.lines = lines{}
	}
	if err != nil {
		return err
	}
	l.head = head
	if l.backlog.n == 0 {
		l.due.Reset(gather)
	}
	l.backlog.add(g.entries, g.size)
	l.crowded.Store(l.backlog.crowded())
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
	l.open.timed = l.open.timed || len(kept) > 0 // the timer is set, or what it had begun is tried again
}
