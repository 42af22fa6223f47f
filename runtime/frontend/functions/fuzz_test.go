package functions

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Whatever a body holds: it is refused, or every call that it holds has arguments that are an object or an error of its
// own, and an answer with a slot for each call can be written.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(txtar.Parse(raw).Files[0].Data)
	}
	f.Add([]byte(`[]`))
	f.Add([]byte(`{"tool_calls":null,"parts":[{"functionCall":null}],"content":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		b, refused := decode(body, nil)
		if refused != nil {
			return
		}
		results := make([]*tool.Result, len(b.calls))
		for i, c := range b.calls {
			var object map[string]json.RawMessage
			if c.err == nil && (c.name == "" || json.Unmarshal(c.arguments, &object) != nil) {
				t.Errorf("call %+v", c)
			}
			results[i] = tool.TextResult("x")
		}
		if _, err := json.Marshal(b.format.answer(b, results)); err != nil {
			t.Error(err)
		}
	})
}
