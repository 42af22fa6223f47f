package join

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// However a text comes in pieces, its lines are the same, and what is too long is not kept.
func TestLinesAreTheSameHoweverTheyCome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 9
		text := rapid.SliceOf(rapid.SampledFrom([]byte("ab\n"))).Draw(t, "text")
		c := cutter{limit: limit}
		var got, want [][]byte
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			c.add(rest[:n], func(line []byte) { got = append(got, bytes.Clone(line)) })
			rest = rest[n:]
		}
		for line := range bytes.Lines(text) {
			want = append(want, line)
		}
		if len(want) > 0 && !bytes.HasSuffix(text, []byte{'\n'}) {
			got = append(got, c.part)
		}
		if len(got) != len(want) {
			t.Fatalf("%q of %q", got, text)
		}
		for n, line := range want {
			if len(line) > limit && len(got[n]) > limit {
				continue // it is told by its length
			}
			if !bytes.Equal(got[n], line) {
				t.Fatalf("%q is not %q", got[n], line)
			}
		}
		if len(c.part) > limit+1 {
			t.Fatalf("%d bytes are kept", len(c.part))
		}
	})
}
