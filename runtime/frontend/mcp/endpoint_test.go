package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The two generations of the protocol.
var generations = map[string]string{
	"with sessions (2025-11-25)":    "2025-11-25",
	"without sessions (2026-07-28)": "2026-07-28",
}

const older, newer = "2025-11-25", "2026-07-28"

type endpoint struct {
	*frontendtest.World
	server *mcp.Server
	url    string
}

func serve(t *testing.T, providers ...provider.Provider) *endpoint {
	t.Helper()
	return serveWith(t, &mcp.Options{}, providers...)
}

func serveWith(t *testing.T, opts *mcp.Options, providers ...provider.Provider) *endpoint {
	t.Helper()
	return serveWorld(t, opts, frontendtest.New(t, providers...))
}

func serveWorld(t *testing.T, opts *mcp.Options, w *frontendtest.World) *endpoint {
	t.Helper()
	opts.Desk, opts.Gate = w.Desk, frontend.NewGate(w.Agents, nil)
	server, err := mcp.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(mcp.Path, server.Handler())
	hs := httptest.NewUnstartedServer(mux)
	hs.Config = frontend.NewHTTPServer(mux, nil)
	hs.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			t.Error("close:", err)
		}
		hs.Close()
	})
	return &endpoint{w, server, hs.URL + mcp.Path}
}

// bearer sends a token and nothing else.
type bearer struct {
	token string
	base  *http.Transport
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.base.RoundTrip(r)
}

func (e *endpoint) connect(t *testing.T, version string, opts *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	base := &http.Transport{}
	transport := &sdk.StreamableClientTransport{Endpoint: e.url, HTTPClient: &http.Client{Transport: &bearer{frontendtest.Token, base}}}
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opts)
	session, err := client.Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Log("closing the client:", err)
		}
		base.CloseIdleConnections()
	})
	return session
}

func core(t providertest.Tool) providertest.Tool {
	t.Coldness = tool.Core
	return t
}

func names(t *testing.T, s *sdk.ClientSession) []string {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func text(t *testing.T, r *sdk.CallToolResult) string {
	t.Helper()
	if len(r.Content) == 0 {
		t.Fatal("no content")
	}
	c, ok := r.Content[0].(*sdk.TextContent)
	if !ok {
		t.Fatalf("content is %T", r.Content[0])
	}
	return c.Text
}

func call(t *testing.T, s *sdk.ClientSession, name string, args any) *sdk.CallToolResult {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rawCall calls a tool with plain HTTP and returns the result as it was on the wire.
func rawCall(t *testing.T, e *endpoint, version, name string) json.RawMessage {
	t.Helper()
	return raw(t, e, version, "tools/call", name, `"name":"`+name+`","arguments":{}`)
}

// raw sends a request of what name names, and returns the bytes of its result.
func raw(t *testing.T, e *endpoint, version, method, name, params string) json.RawMessage {
	t.Helper()
	var session string
	meta := ""
	if version == newer {
		meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newer + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"}},`
	} else {
		resp := e.post(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`, nil)
		session = resp.Header.Get("Mcp-Session-Id")
		readMessages(t, resp)
	}
	resp := e.post(t, `{"jsonrpc":"2.0","id":2,"method":"`+method+`","params":{`+meta+params+`}}`, map[string]string{
		"Mcp-Protocol-Version": version, "Mcp-Session-Id": session, "Mcp-Method": method, "Mcp-Name": name,
	})
	messages := readMessages(t, resp)
	var last struct {
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(messages[len(messages)-1], &last); err != nil || last.Result == nil {
		t.Fatalf("no result: %s %v", messages, err)
	}
	return last.Result
}

func (e *endpoint) post(t *testing.T, body string, header map[string]string) *http.Response {
	t.Helper()
	return e.request(t, http.MethodPost, body, header)
}

func (e *endpoint) request(t *testing.T, method, body string, header map[string]string) *http.Response {
	t.Helper()
	return e.send(t, e.prepare(t, method, body, header))
}

func (e *endpoint) prepare(t *testing.T, method, body string, header map[string]string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, e.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+frontendtest.Token)
	for k, v := range header {
		switch {
		case k == "Host":
			req.Host = v
		case v == "":
			req.Header.Del(k)
		default:
			req.Header.Set(k, v)
		}
	}
	return req
}

func (e *endpoint) send(t *testing.T, req *http.Request) *http.Response {
	t.Helper()
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	resp, err := (&http.Client{Transport: base}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// readMessages reads the JSON-RPC messages of an answer, from an event stream or a body.
func readMessages(t *testing.T, resp *http.Response) []json.RawMessage {
	t.Helper()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return []json.RawMessage{raw}
	}
	var messages []json.RawMessage
	for line := range strings.Lines(string(raw)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(data) != "" {
			messages = append(messages, json.RawMessage(data))
		}
	}
	if len(messages) == 0 {
		t.Fatalf("no message (HTTP %d): %s", resp.StatusCode, raw)
	}
	return messages
}
