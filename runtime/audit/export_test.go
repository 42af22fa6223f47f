package audit

// Crowded reports whether calls wait for the table.
func (l *Log) Crowded() bool { return l.crowded.Load() }
