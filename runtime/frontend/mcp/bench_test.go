package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// BenchmarkCall compares one call over HTTP, from the request's bytes to the answer's, with the SDK's own handler serving
// the same echo tool. The bar: at most twice the SDK's time.
func BenchmarkCall(b *testing.B) {
	for _, version := range []string{older, newer} {
		b.Run("sdk "+version, func(b *testing.B) {
			server := sdk.NewServer(&sdk.Implementation{Name: "echo", Version: "1"}, nil)
			server.AddTool(&sdk.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}, StructuredContent: r.Params.Arguments}, nil
			})
			bench(b, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: version == newer}), version)
			for s := range server.Sessions() {
				s.Close()
			}
		})
		for _, tools := range []int{1, 3300} {
			b.Run(fmt.Sprintf("hermesd %s, %d tools", version, tools), func(b *testing.B) {
				list := make([]providertest.Tool, tools)
				for i := range list {
					list[i] = providertest.Echo(tool.Name(fmt.Sprint("tool_", i)))
				}
				list[0].Name = "echo"
				w := frontendtest.New(b, providertest.New("kit", list...))
				server, err := mcp.New(&mcp.Options{Desk: w.Desk, Gate: frontend.NewGate(w.Agents, nil)})
				if err != nil {
					b.Fatal(err)
				}
				bench(b, server.Handler(), version)
				if err := server.Close(context.Background()); err != nil {
					b.Error(err)
				}
			})
		}
	}
}

func bench(b *testing.B, h http.Handler, version string) {
	b.Helper()
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json, text/event-stream")
	header.Set("Authorization", "Bearer "+frontendtest.Token)
	post := func(body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
		r.Header = header.Clone()
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec
	}
	meta := ""
	if version == older {
		rec := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
		header.Set("Mcp-Session-Id", rec.Header().Get("Mcp-Session-Id"))
		post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	} else {
		meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newer + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}},`
		header.Set("Mcp-Method", "tools/call")
		header.Set("Mcp-Name", "echo")
	}
	header.Set("Mcp-Protocol-Version", version)
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{` + meta + `"name":"echo","arguments":{"text":"hello","n":12}}}`
	if got := post(call).Body.String(); !strings.Contains(got, "hello") {
		b.Fatal(got)
	}
	b.ReportAllocs()
	for b.Loop() {
		post(call)
	}
}
