package audit

// backlog is what is in the journal and not in the table, oldest first, in parts of a fixed room: however much it becomes, no
// call has to wait while all of it is copied. Its room is used again.
type backlog struct {
	parts [][]Entry
	n     int // entries
	size  int // of them, in bytes
	spare [][]Entry
}

const (
	// partRoom is the room of a part, in entries: what is stored with one transaction.
	partRoom = 64 * manyRows
	// spareParts is how much room is kept to be used again. While one part is stored, another is filled.
	spareParts = 4
)

// add puts entries of some bytes at the end.
func (b *backlog) add(entries []Entry, size int) {
	b.n, b.size = b.n+len(entries), b.size+size
	for len(entries) > 0 {
		last := len(b.parts) - 1
		if last < 0 || len(b.parts[last]) == cap(b.parts[last]) {
			b.parts, last = append(b.parts, b.part()), last+1
		}
		part := b.parts[last]
		n := min(len(entries), cap(part)-len(part))
		b.parts[last], entries = append(part, entries[:n]...), entries[n:]
	}
}

func (b *backlog) part() []Entry {
	if last := len(b.spare) - 1; last >= 0 {
		part := b.spare[last]
		b.spare = b.spare[:last]
		return part
	}
	return make([]Entry, 0, partRoom)
}

// take removes all that there is.
func (b *backlog) take() [][]Entry {
	parts := b.parts
	b.parts, b.n, b.size = nil, 0, 0
	return parts
}

// putBack puts what was taken before what has come since.
func (b *backlog) putBack(parts [][]Entry) {
	later := b.take()
	b.parts = parts
	for _, part := range parts {
		b.n, b.size = b.n+len(part), b.size+size(part)
	}
	for _, part := range later { // into the last part's room, lest each attempt to store adds a part
		b.add(part, size(part))
	}
	b.free(later)
}

// free has the room of what was taken used again.
func (b *backlog) free(parts [][]Entry) {
	for _, part := range parts {
		if cap(part) == partRoom && len(b.spare) < spareParts {
			clear(part)
			b.spare = append(b.spare, part[:0])
		}
	}
}

// crowded reports whether so much waits that calls wait, too.
func (b *backlog) crowded() bool { return b.n > crowd || b.size > crowdSize }
