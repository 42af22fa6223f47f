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
