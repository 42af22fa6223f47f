package pipeline

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/hermesd/hermesd/runtime/tool"
)

// FuzzClean cleans what strangers return: what was JSON stays JSON, nothing invisible is left in it, and a second cleaning
// finds nothing.
func FuzzClean(f *testing.F) {
	for _, s := range []string{
		`{"type":"text","text":"a\udb40\udc41"}`, "{\"a\U000E0041\":1}", `{"_meta":{"mcp/a":1,"b":[{}]},"resource":{"_meta":{"mcp/a":1}}}`,
		" ", "{\"0\xf3\xa0\x81\":0}", `{"\u005fmeta":{"\u006dcp/a":1}}`, `{"_meta":null}`, `{"_meta":{"a":1,"a":2,"mcp/x":3} , "b" : 1}`, `{"a":"\\udb40\\udc41"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := &tool.Result{Content: []tool.Content{raw}, Structured: raw, Meta: raw}
		if malformed(r) != "" {
			return
		}
		out := clean(r)
		if bad := malformed(out); bad != "" {
			t.Fatalf("the %s is broken: %s", bad, out.Content[0])
		}
		for _, part := range [][]byte{out.Content[0], out.Structured, out.Meta} {
			for _, c := range string(part) {
				if c >= 0xE0000 && c <= 0xE007F {
					t.Fatalf("%U is left in %q", c, part)
				}
			}
		}
		var meta map[string]json.RawMessage
		if err := json.Unmarshal(out.Meta, &meta); err != nil {
			t.Fatal(err)
		}
		for key := range meta {
			if reserved(key) {
				t.Fatalf("%q is left", key)
			}
		}
		if again := clean(out); again != out {
			t.Fatalf("cleaned twice: %s", again.Content[0])
		}
		if out != r && bytes.Equal(out.Content[0], raw) && bytes.Equal(out.Structured, raw) && bytes.Equal(out.Meta, raw) {
			t.Fatal("nothing changed, but the result was copied")
		}
	})
}
