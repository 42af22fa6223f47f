package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/provider"
)

// visit is a session over HTTP without a network, so that its time can be that of a test.
type visit struct {
	t      *testing.T
	world  *frontendtest.World
	server *mcp.Server
	header map[string]string
}

// visiting begins a session. It ends when the test calls the function.
func visiting(t *testing.T, opts mcp.Options, providers ...provider.Provider) (*visit, func()) {
	t.Helper()
	w := frontendtest.New(t, providers...)
	opts.Desk, opts.Gate = w.Desk, frontend.NewGate(w.Agents, nil)
	server, err := mcp.New(&opts)
	if err != nil {
		t.Fatal(err)
	}
	v := &visit{t, w, server, map[string]string{"Mcp-Protocol-Version": older}}
	begun := v.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"raw","version":"1"}}}`)
	begun.messages()
	v.header["Mcp-Session-Id"] = begun.Header().Get("Mcp-Session-Id")
	v.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`).status(http.StatusAccepted)
	return v, func() {
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// exchange is a request and its answer.
type exchange struct {
	*httptest.ResponseRecorder
	t    *testing.T
	done chan struct{}
	gone context.CancelFunc // breaks the client's connection
}

func (v *visit) post(body string, header ...string) *exchange {
	return v.request(http.MethodPost, body, header...)
}

// call posts a tools/call. With a header that is as good, but not usual, the SDK serves it.
func (v *visit) call(id, name, more string, header ...string) *exchange {
	return v.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q%s}}`, id, name, more), header...)
}

// unusual is a header by which the SDK serves a request.
var unusual = []string{"Content-Type", "application/json; charset=utf-8"}

// request begins a request. The header's names and values alternate.
func (v *visit) request(method, body string, header ...string) *exchange {
	ctx, gone := context.WithCancel(context.Background())
	r := httptest.NewRequestWithContext(ctx, method, "http://localhost/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+frontendtest.Token)
	for name, value := range v.header {
		r.Header.Set(name, value)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	x := &exchange{httptest.NewRecorder(), v.t, make(chan struct{}), gone}
	go func() {
		defer close(x.done)
		defer gone()
		v.server.Handler().ServeHTTP(x, r)
	}()
	return x
}

// status waits for the answer and checks its status.
func (x *exchange) status(want int) {
	x.t.Helper()
	<-x.done
	if x.Code != want {
		x.t.Errorf("HTTP %d, want %d: %s", x.Code, want, x.Body)
	}
}

// messages waits for the answer and returns its messages. streamed is whether they came as events.
func (x *exchange) messages() (messages []map[string]any, streamed bool) {
	x.t.Helper()
	<-x.done
	for _, raw := range readMessages(x.t, x.Result()) {
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			x.t.Fatalf("%v: HTTP %d: %s", err, x.Code, raw)
		}
		messages = append(messages, m)
	}
	return messages, strings.HasPrefix(x.Header().Get("Content-Type"), "text/event-stream")
}

// says waits for an answer of one message, an event if streamed and else a document, that has a text in it.
func (x *exchange) says(streamed bool, text string) {
	x.t.Helper()
	messages, events := x.messages()
	if raw := x.Body.String(); len(messages) != 1 || events != streamed || !strings.Contains(raw, text) {
		x.t.Errorf("want one message with %q, events %v; got HTTP %d: %s", text, streamed, x.Code, raw)
	}
}
