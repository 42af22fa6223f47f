package join

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// Whatever is said on either side: what is written in its place is one line of JSON.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"id":"a","result":{"x":[1,2]}}`, `{"id":-1.5e3,"error":{}}`,
		`{"method":"notifications/cancelled","params":{"requestId":"x"}}`, `{"id":"\"","method":"a\"b"}`, `{"id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a\"b"]}}}`,
		` `, `{"id":1,"id":`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := parse(raw)
		if m.kind == aRequest {
			if out := answer(m.id, interrupted(m.method)); !json.Valid(out) {
				t.Errorf("%s", out)
			}
		}
		if !json.Valid(raw) || !utf8.Valid(raw) {
			return
		}
		if m.kind == aRequest || m.kind == aResponse {
			l := &link{number: 2}
			if out := m.withID(l.clientsID(m.id)); !json.Valid(out) {
				t.Errorf("%s", out)
			}
		}
		if m.kind == aNotification {
			if out := cancelled(string((&link{number: 2}).clientsID(requestID(m.params)))); !json.Valid(out) {
				t.Errorf("%s", out)
			}
		}
		if m.kind == aRequest && m.method == methodListen {
			d := &written{}
			l := &link{Conn: d}
			f := &front{pending: map[string]*request{string(m.id): {id: m.id, method: m.method, params: m.params}}}
			if err := f.listenAgain(l); err != nil {
				t.Fatal(err)
			}
			for _, out := range append(l.news, d.Bytes()) {
				if !json.Valid(out) {
					t.Errorf("%s", out)
				}
			}
		}
	})
}

// written is a daemon that takes everything and says nothing.
type written struct{ bytes.Buffer }

func (*written) CloseWrite() error { return nil }
func (*written) Close() error      { return nil }
