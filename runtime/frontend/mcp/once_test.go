package mcp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
)

func TestAHeaderThatIsThereTwiceIsRefused(t *testing.T) {
	p := providertest.New("t", core(providertest.Echo("t_echo")))
	e := serve(t, p)
	session := e.connect(t, older, nil).ID()
	newerCall := func() *http.Request {
		return e.prepare(t, http.MethodPost, plainCall("1", "t_echo", ""), plainHeader("t_echo"))
	}
	olderCall := func() *http.Request {
		return e.prepare(t, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t_echo"}}`,
			map[string]string{"Mcp-Session-Id": session, "Mcp-Protocol-Version": older, "Mcp-Name": "t_echo", "Mcp-Method": "tools/call"})
	}
	sdkCall := func() *http.Request {
		r := newerCall()
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
		return r
	}
	others := map[string]string{
		"Mcp-Name": "t_other", "Mcp-Method": "tools/list", "Mcp-Protocol-Version": "2025-06-18", "Mcp-Session-Id": "other",
		"Authorization": "Bearer " + frontendtest.OtherToken,
	}
	for name, request := range map[string]func() *http.Request{"plain": newerCall, "by the SDK": sdkCall, "in a session": olderCall} {
		if resp := e.send(t, request()); resp.StatusCode != http.StatusOK {
			t.Fatalf("%s, each header once: HTTP %d: %s", name, resp.StatusCode, readMessages(t, resp))
		} else {
			readMessages(t, resp)
		}
		before := len(p.Calls())
		for header, other := range others {
			first := request()
			if header == "Mcp-Session-Id" && first.Header.Get(header) == "" {
				first.Header.Set(header, "one")
			}
			for order, values := range map[string][]string{
				"another after it": {first.Header.Get(header), other}, "another before it": {other, first.Header.Get(header)},
				"the same again": {first.Header.Get(header), first.Header.Get(header)},
			} {
				r := request()
				r.Header[header] = values
				resp := e.send(t, r)
				raw := readMessages(t, resp)[0]
				if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(raw), header) || !json.Valid(raw) {
					t.Errorf("%s, %s, %s: HTTP %d: %s", name, header, order, resp.StatusCode, raw)
				}
			}
		}
		if ran := len(p.Calls()) - before; ran != 0 {
			t.Errorf("%s: %d calls ran", name, ran)
		}
	}
}

// A body is one message, or the batch of them that old clients may send, and says each thing once.
func TestABodyThatSaysSomethingTwiceIsRefused(t *testing.T) {
	p := providertest.New("t", core(providertest.Echo("t_echo")), core(providertest.Echo("t_other")))
	e := serve(t, p)
	id := e.connect(t, older, nil).ID()
	charset := plainHeader("t_echo")
	charset["Content-Type"] = "application/json; charset=utf-8"
	ways := map[string]map[string]string{
		"plain headers": plainHeader("t_echo"), "by the SDK": charset, "without a version": {},
		"in a session": {"Mcp-Session-Id": id, "Mcp-Protocol-Version": older},
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	message := func(way, members, params string) string {
		if ways[way]["Mcp-Method"] != "" {
			params = meta + "," + params
		}
		return `{"jsonrpc":"2.0",` + members + `,"params":{` + params + `}}`
	}
	const members, params = `"id":7,"method":"tools/call"`, `"name":"t_echo","arguments":{"x":1}`
	for way, header := range ways {
		good := message(way, members, params)
		cases := map[string]struct {
			body string
			code int
			id   string
		}{
			"method":                  {message(way, `"method":"ping",`+members, params), -32600, "7"},
			"method, escaped":         {message(way, members+`,"m\u0065thod":"ping"`, params), -32600, "7"},
			"id":                      {message(way, `"id":8,`+members, params), -32600, "null"},
			"params":                  {message(way, members+`,"params":{}`, params), -32600, "7"},
			"name":                    {message(way, members, params+`,"name":"t_other"`), -32600, "7"},
			"the same name":           {message(way, members, `"name":"t_echo",`+params), -32600, "7"},
			"arguments":               {message(way, members, params+`,"arguments":{"x":2}`), -32600, "7"},
			"_meta":                   {message(way, members, params+`,"_meta":{},"_meta":{}`), -32600, "7"},
			"a message after another": {good + good, -32700, "null"},
			"a message, then a line":  {good + "\n" + good + "\n", -32700, "null"},
			"text after a message":    {good + "x", -32700, "null"},
			"bytes that are no text":  {message(way, members, `"name":"t_echo","arguments":{"x":"`+"a\xff"+`"}`), -32700, "null"},
			"in a batch":              {"[" + good + "," + message(way, members, params+`,"name":"t_other"`) + "]", -32600, "7"},
		}
		before := len(p.Calls())
		for name, c := range cases {
			resp := e.post(t, c.body, header)
			var m struct {
				ID    json.RawMessage
				Error struct{ Code int }
			}
			raw := readMessages(t, resp)[0]
			if err := json.Unmarshal(raw, &m); err != nil || resp.StatusCode != http.StatusBadRequest || m.Error.Code != c.code || string(m.ID) != c.id {
				t.Errorf("%s, %s: HTTP %d: %s", way, name, resp.StatusCode, raw)
			}
		}
		if ran := len(p.Calls()) - before; ran != 0 {
			t.Errorf("%s: %d calls ran", way, ran)
		}
		twiceInArguments := message(way, members, `"name":"t_echo","arguments":{"name":1,"name":1}`)
		for name, body := range map[string]string{"good": good, "arguments are the tool's": twiceInArguments, "space around it": "\n" + good + " \n"} {
			if resp := e.post(t, body, header); resp.StatusCode != http.StatusOK {
				t.Errorf("%s, %s: HTTP %d: %s", way, name, resp.StatusCode, readMessages(t, resp))
			} else {
				readMessages(t, resp)
			}
		}
	}
}
