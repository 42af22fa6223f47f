package bench

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The protocol's versions that are measured: that of the clients of today, which have sessions, and that without.
const (
	withSessions = "2025-11-25"
	stateless    = "2026-07-28"
)

// A small call of an MCP server on stdio: by the official SDK alone, and through the daemon, with audit (safe from a
// crash of the process) and everything else that it does.
func BenchmarkMCPServer(b *testing.B) {
	args := map[string]any{"name": "Ada"}
	raw, err := json.Marshal(args)
	if err != nil {
		b.Fatal(err)
	}
	const name = "mcp__bare__greet"
	block := unguarded + fmt.Sprintf(`
audit {
  sync = "process"
}
mcp_server "bare" {
  command  = [%q]
  parallel = true
}
`, bareServer(b))

	for _, version := range []string{withSessions, stateless} {
		b.Run("directly, "+version, func(b *testing.B) {
			s := connect(b, &sdk.CommandTransport{Command: exec.Command(bareServer(b))}, version)
			run(b, sdkCall(s, "greet", args))
		})
	}
	d := serve(b, block)
	b.Run("through hermesd", func(b *testing.B) { run(b, daemonCall(d, name, raw)) })
	p := daemonProcess(b, b.TempDir(), block) // as in life: no garbage of the caller's is the daemon's to collect
	for _, version := range []string{withSessions, stateless} {
		b.Run("through hermesd mcp, "+version, func(b *testing.B) {
			run(b, sdkCall(connect(b, &sdk.CommandTransport{Command: p.command("mcp")}, version), name, args))
		})
		b.Run("through hermesd over HTTP, "+version, func(b *testing.B) {
			run(b, sdkCall(overHTTP(b, p.url, version), name, args))
		})
	}
	p.end(b)
}
