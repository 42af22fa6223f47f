package mcp

import (
	"encoding/json"
	"testing"
)

// Whatever is taken for a plain call reads the same to encoding/json.
func FuzzPlainCall(f *testing.F) {
	const plain = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"c"},"progressToken":"p"},"name":"a","arguments":{"b":[1]}}}`
	if _, ok := readPlainCall([]byte(plain), &lastClient{}); !ok {
		f.Fatal("the plain call is not taken for one")
	}
	const inSession = `{"jsonrpc":"2.0","id":"i","method":"tools/call","params":{"name":"a","_meta":{"progressToken":1,"x":{}}}}`
	if _, ok := readPlainCall([]byte(inSession), &lastClient{}); !ok {
		f.Fatal("the plain call of a session is not taken for one")
	}
	for _, seed := range []string{plain, inSession, `{}`, `[` + plain + `]`, plain + plain, `{"jsonrpc":"2.0","id":1.5,"params":null}`, `{"id":1,"id":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, ok := readPlainCall(body, &lastClient{})
		if !ok {
			return
		}
		var want struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments json.RawMessage
				Meta      map[string]json.RawMessage `json:"_meta"`
			}
		}
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatal(err)
		}
		arguments := string(want.Params.Arguments)
		if arguments == "null" {
			arguments = ""
		}
		if c.name != want.Params.Name || string(c.id) != string(want.ID) || string(c.arguments) != arguments || want.Method != "tools/call" {
			t.Errorf("got %+v of %s", c, body)
		}
		if !json.Valid(c.id) || (c.version == stateless) != (c.from != nil) {
			t.Errorf("id %s, client %v", c.id, c.from)
		}
	})
}
