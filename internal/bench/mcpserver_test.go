package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
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

	b.Run("directly", func(b *testing.B) {
		s := connect(b, &sdk.CommandTransport{Command: exec.Command(bareServer(b))})
		run(b, sdkCall(s, "greet", args))
	})
	d := serve(b, unguarded+fmt.Sprintf(`
audit {
  sync = "process"
}
mcp_server "bare" {
  command  = [%q]
  parallel = true
}
`, bareServer(b)))
	b.Run("through hermesd", func(b *testing.B) { run(b, daemonCall(d, name, raw)) })
	b.Run("through hermesd over a stream, as hermesd mcp has it", func(b *testing.B) {
		ours, theirs := net.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- d.ServeStream(context.Background(), "", theirs) }()
		b.Cleanup(func() {
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
		run(b, sdkCall(connect(b, &sdk.IOTransport{Reader: ours, Writer: ours}), name, args))
	})
	b.Run("through hermesd over HTTP", func(b *testing.B) {
		run(b, sdkCall(overHTTP(b, d.Addresses().HTTP+"/mcp"), name, args))
	})
}
