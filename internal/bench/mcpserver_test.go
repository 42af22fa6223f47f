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
// crash of the process) and everything else that it does. The server speaks the version that its caller speaks.
func BenchmarkMCPServer(b *testing.B) {
	args := map[string]any{"name": "Ada"}
	raw, err := json.Marshal(args)
	if err != nil {
		b.Fatal(err)
	}
	names := map[string]string{withSessions: "mcp__sessions__greet", stateless: "mcp__stateless__greet"}
	block := unguarded + fmt.Sprintf(`
audit {
  sync = "process"
}
mcp_server "sessions" {
  command  = [%q]
  parallel = true
  protocol = "2025-11-25"
}
mcp_server "stateless" {
  command  = [%[1]q]
  parallel = true
}
`, bareServer(b))

	for _, version := range []string{withSessions, stateless} {
		b.Run("directly, "+version, func(b *testing.B) {
			s := connect(b, &sdk.CommandTransport{Command: exec.Command(bareServer(b))}, version)
			run(b, sdkCall(s, "greet", args))
		})
	}
	bare := launch(b, "listening", bareServer(b), "-http") // what HTTP alone costs
	for _, version := range []string{withSessions, stateless} {
		b.Run("directly over HTTP, "+version, func(b *testing.B) {
			run(b, sdkCall(overHTTP(b, bare.url, version), "greet", args))
		})
	}
	bare.end(b)
	d := serve(b, block)
	for _, version := range []string{withSessions, stateless} {
		b.Run("through hermesd, "+version, func(b *testing.B) { run(b, daemonCall(d, names[version], raw)) })
	}
	p := daemonProcess(b, b.TempDir(), block) // as in life: no garbage of the caller's is the daemon's to collect
	for _, version := range []string{withSessions, stateless} {
		b.Run("through hermesd mcp, "+version, func(b *testing.B) {
			run(b, sdkCall(connect(b, &sdk.CommandTransport{Command: p.command("mcp")}, version), names[version], args))
		})
		b.Run("through hermesd over HTTP, "+version, func(b *testing.B) {
			run(b, sdkCall(overHTTP(b, p.url, version), names[version], args))
		})
	}
	p.end(b)
}
