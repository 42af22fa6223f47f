package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// MCP 2025-11-25, session management: DELETE ends a session. What runs in it ends with it and is answered; what comes
// after it finds no session.
func TestAnEndedSessionCancelsItsCalls(t *testing.T) {
	started, ended := make(chan struct{}, 1), make(chan error, 1)
	o := &operator{}
	e := supervised(t, o, providertest.New("jobs", providertest.Tool{
		Definition: tool.Definition{Name: "jobs_hang"},
		Handler: func(ctx context.Context, _ *provider.Request) (*tool.Result, error) {
			started <- struct{}{}
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		},
	}))
	session := func() map[string]string {
		resp := e.post(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`, nil)
		readMessages(t, resp)
		return map[string]string{"Mcp-Session-Id": resp.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": older}
	}
	const hang = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"jobs_hang"}}`
	one, other := session(), session()
	running := e.post(t, hang, one)
	<-started
	elsewhere := e.post(t, hang, other)
	<-started

	if resp := e.request(t, http.MethodDelete, "", map[string]string{"Mcp-Session-Id": one["Mcp-Session-Id"], "Mcp-Protocol-Version": "2001-01-01"}); resp.StatusCode != 400 {
		t.Errorf("a version that does not exist: HTTP %d", resp.StatusCode)
	}
	select {
	case err := <-ended:
		t.Fatalf("a refused DELETE ended a call: %v", err)
	default:
	}
	begun := time.Now()
	if resp := e.request(t, http.MethodDelete, "", one); resp.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: HTTP %d", resp.StatusCode)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("DELETE took %v", took)
	}
	if err := <-ended; err != context.Canceled {
		t.Errorf("the tool's context: %v", err)
	}
	messages := readMessages(t, running)
	var last struct {
		ID     int
		Result struct{ IsError bool }
	}
	if raw := messages[len(messages)-1]; json.Unmarshal(raw, &last) != nil || last.ID != 2 || !last.Result.IsError || !strings.Contains(string(raw), string(tool.Cancelled)) {
		t.Errorf("the call's answer: %s", raw)
	}
	if _, records := o.take(); records[len(records)-1] != "desk finished jobs_hang {} cancelled" {
		t.Errorf("on record: %q", records)
	}
	for method, body := range map[string]string{http.MethodPost: hang, http.MethodDelete: "", http.MethodGet: ""} {
		if resp := e.request(t, method, body, one); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s after the end: HTTP %d", method, resp.StatusCode)
		}
	}

	// Another session of the same agent goes on.
	select {
	case err := <-ended:
		t.Errorf("the other session's call ended: %v", err)
	default:
	}
	if resp := e.request(t, http.MethodDelete, "", other); resp.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: HTTP %d", resp.StatusCode)
	}
	<-ended
	readMessages(t, elsewhere)
}

// Nor does a call whose client went away keep a session alive.
func TestASessionEndsThoughNobodyReadsItsCalls(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	e := serve(t, providertest.New("jobs", providertest.Tool{
		Definition: tool.Definition{Name: "jobs_hang"},
		Handler: func(ctx context.Context, _ *provider.Request) (*tool.Result, error) {
			close(started)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		},
	}))
	resp := e.post(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`, nil)
	readMessages(t, resp)
	header := map[string]string{"Mcp-Session-Id": resp.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": older}
	broken := e.post(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"jobs_hang"}}`, header)
	if _, err := bufio.NewReader(broken.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	<-started
	broken.Body.Close()
	if resp := e.request(t, http.MethodDelete, "", header); resp.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: HTTP %d", resp.StatusCode)
	}
	<-ended
}
