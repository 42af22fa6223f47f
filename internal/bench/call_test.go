package bench

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A warm tool_call of a small plugin tool, from the bridge to the provider and back, audit on, beside the same tool as a bare
// MCP server on stdio, called by the Go SDK.
func BenchmarkCall(b *testing.B) {
	through := map[string]any{"calls": []any{map[string]any{"name": "greet", "arguments": map[string]any{"name": "Ada"}}}}
	raw, err := json.Marshal(through)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("bare MCP server on stdio", func(b *testing.B) {
		s := connect(b, &sdk.CommandTransport{Command: exec.Command(bareServer(b))}, stateless)
		run(b, sdkCall(s, "greet", map[string]any{"name": "Ada"}))
	})
	for _, sync := range []string{"process", "power"} {
		d := serve(b, unguarded+fmt.Sprintf("audit {\n  sync = %q\n}\nplugin \"hello\" {\n  path = %q\n}\n", sync, hello(b)))
		b.Run("hermesd, tool_call, audit "+sync, func(b *testing.B) { run(b, daemonCall(d, "tool_call", raw)) })
		b.Run("hermesd over HTTP, tool_call, audit "+sync, func(b *testing.B) {
			run(b, sdkCall(overHTTP(b, d.Addresses().HTTP+"/mcp", stateless), "tool_call", through))
		})
	}
}
