package audit

import "github.com/hermesd/hermesd/runtime/tool"

// Crowded reports whether calls wait for the table.
func (l *Log) Crowded() bool { return l.crowded.Load() }

// EntryOf is a record as it will be stored, but for its place in the chain.
func (l *Log) EntryOf(r *tool.Record) Entry { return l.entry(r) }

// Insert adds entries to the table.
func (l *Log) Insert(entries []Entry) (int, error) {
	l.storing.Lock()
	defer l.storing.Unlock()
	return l.insert(entries)
}

// ManyRows is how many rows one statement adds.
const ManyRows = manyRows

// EndWork ends the goroutines that write for others.
func (l *Log) EndWork() {
	l.stop()
	l.work.Wait()
}
