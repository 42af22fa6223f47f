package audit

import (
	"testing"

	"pgregory.net/rapid"
)

// TestABacklogKeepsOrderCountAndRoom does to a backlog what a log does to it, beside a plain list.
func TestABacklogKeepsOrderCountAndRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b backlog
		var taken [][]Entry
		next, first := int64(0), int64(0) // that comes, and that is not stored yet
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				group := make([]Entry, rapid.SampledFrom([]int{1, 2, 7, partRoom - 1, partRoom, 2*partRoom + 5}).Draw(t, "records"))
				for i := range group {
					group[i].Seq = next
					next++
				}
				b.add(group, size(group))
				clear(group) // the group's room is used again
			},
			"take": func(t *rapid.T) {
				if taken == nil {
					taken = b.take()
				}
			},
			"some could not be stored": func(t *rapid.T) {
				if len(taken) > 0 {
					whole := rapid.IntRange(0, len(taken)-1).Draw(t, "parts stored")
					of := rapid.IntRange(0, len(taken[whole])-1).Draw(t, "records stored of the next")
					first = taken[whole][of].Seq
					b.putBack(append([][]Entry{taken[whole][of:]}, taken[whole+1:]...))
				}
				taken = nil
			},
			"all were stored": func(*rapid.T) {
				for _, part := range taken {
					first += int64(len(part))
				}
				b.free(taken)
				taken = nil
			},
			"": func(t *rapid.T) {
				want, bytes, kept := first, 0, 0
				for _, parts := range [][][]Entry{taken, b.parts} {
					for _, part := range parts {
						kept += len(part)
						for i := range part {
							if part[i].Seq != want {
								t.Fatalf("record %d comes where %d should", part[i].Seq, want)
							}
							want++
						}
					}
				}
				for _, part := range b.parts {
					bytes += size(part)
				}
				waiting := kept
				for _, part := range taken {
					waiting -= len(part)
				}
				if want != next || b.n != waiting || b.size != bytes {
					t.Fatalf("%d records of %d bytes are %d of %d, up to %d of %d", waiting, bytes, b.n, b.size, want, next)
				}
				if most := b.n/partRoom + 2; len(b.parts) > most || len(b.spare) > spareParts {
					t.Fatalf("%d records take %d parts, with %d to spare", b.n, len(b.parts), len(b.spare))
				}
			},
		})
	})
}
