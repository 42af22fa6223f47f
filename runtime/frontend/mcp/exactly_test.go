package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/hermesd/hermesd/runtime/provider/providertest"
)

var exactIDs = []string{`1`, `9007199254740993`, `-9007199254740993`, `18446744073709551616`, `1.5`, `1e3`, `"9007199254740993"`}

func TestARequestOfASessionIsAnsweredUnderTheIDThatWasSent(t *testing.T) {
	e := serve(t, providertest.New("t", core(providertest.Echo("t_echo"))))
	header := map[string]string{"Mcp-Session-Id": e.connect(t, older, nil).ID(), "Mcp-Protocol-Version": older}
	for _, id := range exactIDs {
		for _, request := range []string{`"method":"tools/call","params":{"name":"t_echo"}`, `"method":"ping"`} {
			raw, err := io.ReadAll(e.post(t, `{"jsonrpc":"2.0","id":`+id+`,`+request+`}`, header).Body)
			if err != nil || !strings.Contains(string(raw), `"id":`+id+`,"result"`) {
				t.Errorf("%s, %s: %s, %v", id, request, raw, err)
				continue
			}
			if !strings.HasPrefix(string(raw), "event: ") {
				continue // a document: there is nothing to take up
			}
			first, rest, _ := strings.Cut(string(raw), "\nid: ")
			last, _, _ := strings.Cut(rest, "\n")
			resumed := e.request(t, http.MethodGet, "", map[string]string{"Mcp-Session-Id": header["Mcp-Session-Id"], "Mcp-Protocol-Version": older, "Last-Event-Id": last})
			if again, err := io.ReadAll(resumed.Body); err != nil || !strings.Contains(string(again), `"id":`+id+`,"result"`) {
				t.Errorf("%s, taken up after %q of %s: %s, %v", id, last, first, again, err)
			}
		}
	}
}

func TestACallOfASessionIsCancelledByTheIDThatWasSent(t *testing.T) {
	hang, begun, _, ended := hanging("t_hang")
	e := serve(t, providertest.New("t", hang))
	header := map[string]string{"Mcp-Session-Id": e.connect(t, older, nil).ID(), "Mcp-Protocol-Version": older}
	var calls sync.WaitGroup
	defer calls.Wait()
	for _, id := range exactIDs {
		calls.Go(func() {
			e.post(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"t_hang"}}`, header)
		})
		<-begun
		e.post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`, header)
		if err := <-ended; err != context.Canceled {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestARequestWithoutASessionIsAnsweredUnderTheIDThatWasSent(t *testing.T) {
	e := serve(t, providertest.New("t", core(providertest.Echo("t_echo"))))
	for _, id := range exactIDs {
		list := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newer + `","io.modelcontextprotocol/clientCapabilities":{}}}}`
		for name, header := range map[string]map[string]string{"without headers": nil, newer: {"Mcp-Protocol-Version": newer, "Mcp-Method": "tools/list"}} {
			messages := readMessages(t, e.post(t, list, header))
			var m struct{ ID json.RawMessage }
			if json.Unmarshal(messages[len(messages)-1], &m) != nil || string(m.ID) != id {
				t.Errorf("%s, %s: %s", id, name, messages)
			}
		}
	}
}
