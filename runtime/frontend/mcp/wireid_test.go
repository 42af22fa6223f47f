package mcp

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func TestIDsComeBackAsTheyWereSent(t *testing.T) {
	for _, id := range []string{
		`1`, `0`, `-1`, `"1"`, `""`, `"a\"b"`, `9007199254740991`, `9007199254740993`, `-9007199254740993`, `12345678901234567890123`, `1.5`, `-0.25`, `1e3`, `1.0`, `-0`, `1e400`,
	} {
		x := newExactIDs()
		m, err := jsonrpc.DecodeMessage(x.hide(json.RawMessage(`{"jsonrpc":"2.0", "id": ` + id + ` ,"method":"tools/call","params":{"n":1.50}}`)))
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		r := m.(*jsonrpc.Request)
		if string(r.Params) != `{"n":1.50}` || r.Method != "tools/call" {
			t.Errorf("%s: the request is %+v", id, r)
		}
		raw, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: r.ID, Result: json.RawMessage(`{"id":"x"}`)})
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			ID     json.RawMessage
			Result json.RawMessage
		}
		if err := json.Unmarshal(x.show(raw), &answer); err != nil || string(answer.ID) != id || string(answer.Result) != `{"id":"x"}` {
			t.Errorf("%s is answered as %s (%v)", id, x.show(raw), err)
		}
		cancelled, err := jsonrpc.DecodeMessage(x.hide(json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"\u2028x"}}`)))
		if err != nil {
			t.Fatal(err)
		}
		var p struct{ RequestID any }
		if err := json.Unmarshal(cancelled.(*jsonrpc.Request).Params, &p); err != nil {
			t.Fatal(err)
		}
		if named, err := jsonrpc.MakeID(p.RequestID); err != nil || named != r.ID {
			t.Errorf("cancelling %s is of %v (%v), not of %v", id, named, err, r.ID)
		}
	}
}

func FuzzExactIDs(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1.5,"method":"notifications/cancelled","params":{"requestId":9007199254740993}}`))
	f.Add([]byte(`{"id":1e5,"":{},"\u0000":"\ud800"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		x := newExactIDs()
		out := x.hide(raw)
		if json.Valid(raw) && !json.Valid(out) {
			t.Errorf("%s", out)
		}
		if shown := x.show(out); json.Valid(raw) && !json.Valid(shown) {
			t.Errorf("%s", shown)
		}
	})
}

func TestAnAnswersIDIsLeftAlone(t *testing.T) {
	for _, raw := range []string{`{"jsonrpc":"2.0","id":5.0,"result":{}}`, `[{"jsonrpc":"2.0","id":5.0,"result":{}}]`} {
		if got := newExactIDs().hideAll(json.RawMessage(raw)); string(got) != raw {
			t.Errorf("%s became %s", raw, got)
		}
	}
}
