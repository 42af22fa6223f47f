package main

import (
	"bufio"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Reading on from where the last part ended gives the whole file, each part inside the limit and made of whole lines,
// unless a single line is longer than the limit.
func TestPartsPutTogetherAreTheFile(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.IntRange(1, 60).Draw(r, "limit")
		count := rapid.IntRange(0, 4).Draw(r, "count")
		text := strings.Join(rapid.SliceOf(rapid.StringMatching(`[a-z]{0,50}\n`)).Draw(r, "lines"), "") + rapid.StringMatching(`[a-z]{0,9}`).Draw(r, "rest")
		var got strings.Builder
		start := 1
		for range strings.Count(text, "\n") + 2 {
			// The smallest buffer, so that lines are longer than it.
			p, err := readLines(t.Context(), bufio.NewReaderSize(strings.NewReader(text), 16), start, count, limit)
			if err != nil {
				r.Fatal(err)
			}
			if len(p.text) > limit {
				r.Fatalf("%d bytes of at most %d", len(p.text), limit)
			}
			if count > 0 && p.lines > count {
				r.Fatalf("%d lines of at most %d", p.lines, count)
			}
			got.WriteString(p.text)
			if p.cut { // what was cut off is passed over
				line := strings.SplitAfter(text, "\n")[start-1]
				if len(line) <= limit || p.text != line[:limit] {
					r.Fatalf("line %q was cut to %q at %d", line, p.text, limit)
				}
				got.WriteString(line[limit:])
			}
			start += p.lines
			if !p.more || p.cut && start > len(strings.SplitAfter(text, "\n")) {
				break
			}
		}
		if got.String() != text {
			r.Fatalf("got %q of %q", got.String(), text)
		}
	})
}
