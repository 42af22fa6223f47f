package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A small call of an MCP server on stdio: by the official SDK alone, and through the daemon, with audit (safe from a
// crash of the process) and everything else that it does. The daemon may add 0.3 ms at the median, and must keep 70% of the calls per second with 16 callers.
func BenchmarkMCPServer(b *testing.B) {
	bare := build(b, b.TempDir(), "./internal/bench/bareserver")
	args := map[string]any{"name": "Ada"}
	raw, err := json.Marshal(args)
	if err != nil {
		b.Fatal(err)
	}
	const name = "mcp__bare__greet"

	b.Run("directly", func(b *testing.B) {
		s := connect(b, &sdk.CommandTransport{Command: exec.Command(bare)})
		runTimed(b, sdkCall(s, "greet", args))
	})
	d := serve(b, fmt.Sprintf(`
audit {
  sync = "process"
}
guard {
  calls_per_minute = 0
  concurrent_calls = 0
}
mcp_server "bare" {
  command  = [%q]
  parallel = true
}
`, bare))
	<-d.Settled()
	b.Run("through hermesd", func(b *testing.B) {
		runTimed(b, func() error {
			result, err := d.Call(context.Background(), "", name, raw)
			if err == nil && result.IsError {
				err = fmt.Errorf("it answered %s", result.Text())
			}
			return err
		})
	})
	b.Run("through hermesd over a stream, as hermesd mcp has it", func(b *testing.B) {
		ours, theirs := net.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- d.ServeStream(context.Background(), "", theirs) }()
		b.Cleanup(func() {
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
		runTimed(b, sdkCall(connect(b, &sdk.IOTransport{Reader: ours, Writer: ours}), name, args))
	})
	b.Run("through hermesd over HTTP", func(b *testing.B) {
		// As many connections as callers are kept, as a program with many callers does.
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
		s := connect(b, &sdk.StreamableClientTransport{Endpoint: d.Addresses().HTTP + "/mcp", HTTPClient: client})
		runTimed(b, sdkCall(s, name, args))
	})
}

// runTimed is [run] with the median of a single caller's calls.
func runTimed(b *testing.B, call func() error) {
	waitFor(b, call)
	b.Run("callers=1", func(b *testing.B) {
		var took []time.Duration
		for b.Loop() {
			begun := time.Now()
			if err := call(); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begun))
		}
		median(b, took)
	})
	b.Run("callers=16", func(b *testing.B) {
		work := make(chan struct{})
		var callers sync.WaitGroup
		for range 16 {
			callers.Go(func() {
				for range work {
					if err := call(); err != nil {
						b.Error(err)
					}
				}
			})
		}
		for b.Loop() {
			work <- struct{}{}
		}
		close(work)
		callers.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	})
}
