package bridge

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// document draws a JSON value as its tokens.
func document(depth int) *rapid.Generator[[]string] {
	return rapid.Custom(func(t *rapid.T) []string {
		kinds := 3
		if depth > 0 {
			kinds = 5
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return []string{rapid.SampledFrom([]string{"1", "-2.5e3", "true", "false", "null"}).Draw(t, "literal")}
		case 1, 2:
			return []string{text().Draw(t, "text")}
		case 3:
			tokens := []string{"["}
			for i := range rapid.IntRange(0, 4).Draw(t, "items") {
				if i > 0 {
					tokens = append(tokens, ",")
				}
				tokens = append(tokens, document(depth-1).Draw(t, "item")...)
			}
			return append(tokens, "]")
		default:
			tokens := []string{"{"}
			for i := range rapid.IntRange(0, 4).Draw(t, "members") {
				if i > 0 {
					tokens = append(tokens, ",")
				}
				tokens = append(append(tokens, text().Draw(t, "key"), ":"), document(depth-1).Draw(t, "value")...)
			}
			return append(tokens, "}")
		}
	})
}

// text draws a string that looks as much like JSON as it can.
func text() *rapid.Generator[string] {
	return rapid.Map(rapid.StringMatching(`[a{}\[\],:"\\ \n]{0,8}`), func(s string) string {
		raw, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return string(raw)
	})
}

func decode(t interface{ Fatalf(string, ...any) }, raw []byte) any {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return v
}

func TestDroppedAndTrailingCommasAreMended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := document(3).Draw(t, "document")
		whole := decode(t, []byte(strings.Join(tokens, " ")))
		var broken []string
		for i, token := range tokens {
			if token == "," && rapid.Bool().Draw(t, "drop") {
				continue
			}
			after := i > 0 && tokens[i-1] != "[" && tokens[i-1] != "{"
			if (token == "]" || token == "}") && after && rapid.Bool().Draw(t, "trail") {
				broken = append(broken, ",")
			}
			broken = append(broken, token)
		}
		text := strings.Join(broken, rapid.SampledFrom([]string{" ", "\n", "\t\r\n"}).Draw(t, "space"))
		got, err := repair([]byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if d := cmp.Diff(whole, decode(t, got)); d != "" {
			t.Fatalf("%q was mended to something else:\n%s", text, d)
		}
	})
}

func TestTruncatedTextIsNeverAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := []byte(strings.Join(append(append([]string{"["}, document(3).Draw(t, "document")...), "]"), ""))
		cut := whole[:rapid.IntRange(1, len(whole)-1).Draw(t, "at")]
		if got, err := repair(cut); err == nil {
			t.Fatalf("%q became %q", cut, got)
		}
	})
}

func TestARefusalEchoesNothing(t *testing.T) {
	const secret = "éØ"
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[{}\[\],:"\\ 1a]{0,12}(éØ|Øé)[{}\[\],:"\\ 1a]{0,12}`).Draw(t, "text")
		_, err := value([]byte(text))
		if err != nil && strings.ContainsAny(err.Error(), secret+"Ã") {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

func FuzzRepair(f *testing.F) {
	for _, seed := range []string{`[{"a":1}{"b":2,}]`, `{"a" "b"}`, `[1,,2]`, `{,}`, `"\`, `]`, "\xff", `{"a":"b"c"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := repair(text)
		if err != nil {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%q became %q, which is no JSON", text, got)
		}
		if json.Valid(text) && !bytes.Equal(got, text) {
			t.Fatalf("%q was sound and became %q", text, got)
		}
		if len(got) > 2*len(text) {
			t.Fatalf("%q grew to %q", text, got)
		}
	})
}

func TestValueHasBounds(t *testing.T) {
	deep := strings.Repeat("[", maxNesting+1) + strings.Repeat("]", maxNesting+1)
	for name, test := range map[string]struct{ text, want string }{
		"too deep":                     {deep, "nested too deeply"},
		"too deep and broken":          {strings.Repeat("[", 1<<20), "nested too deeply"},
		"too large":                    {`"` + strings.Repeat("x", maxInput) + `"`, "too large"},
		"brackets in text do not nest": {`"` + strings.Repeat("[", 1000) + `"`, ""},
		"as deep as is permitted":      {deep[1 : len(deep)-1], ""},
		"invalid UTF-8 is replaced":    {"\"\xff\"", ""},
	} {
		_, err := value([]byte(test.text))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
