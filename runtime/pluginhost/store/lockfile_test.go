package store

import (
	"strings"
	"testing"
)

// What is read of a file is what was written, and what cannot be read stays refused however often it is written.
func FuzzParseLock(f *testing.F) {
	digest := strings.Repeat("ab", 32)
	f.Add([]byte("format = 1\nprovider \"p\" {\n  kind = \"mcp\"\n  accepted = \"2026-01-02T03:04:05Z\"\n  tools = {\n    a = \"" + digest + "\"\n    \"b c\" = \"" + digest + "\"\n  }\n}\n"))
	f.Add([]byte("format = 1\nprovider \"p\" {\n  damaged = \"x\"\n}\nprovider \"p\" {}\nprovider \"q\" {\n  binary = \"" + digest + "\"\n}\n"))
	f.Add([]byte("format = 2"))
	f.Fuzz(func(t *testing.T, content []byte) {
		first := parseLock(content)
		if first.damage != "" {
			return
		}
		again := parseLock(first.render())
		if again.damage != "" || len(again.providers) != len(first.providers) || len(again.damaged) != len(first.damaged) {
			t.Fatalf("from %+v to %+v:\n%s", first, again, first.render())
		}
		for name, e := range first.providers {
			if !e.equal(again.providers[name]) {
				t.Errorf("%s: from %+v to %+v", name, e, again.providers[name])
			}
		}
	})
}
