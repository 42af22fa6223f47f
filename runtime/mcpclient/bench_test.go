package mcpclient_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The same server, a child process over stdio: called by the official SDK alone, and through the provider.

func benchmarkDirect(b *testing.B, env, name, args string) {
	cmd := exec.Command(self(b))
	cmd.Env = append(os.Environ(), env)
	s := direct(b, &mcp.CommandTransport{Command: cmd})
	call := func() {
		r, err := s.CallTool(b.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
		if err != nil || r.IsError {
			b.Fatal(r, err)
		}
	}
	call()
	for b.Loop() {
		call()
	}
}

func benchmarkProvider(b *testing.B, o mcpclient.Options, name, args string) {
	r := start(b, o)
	r.ready()
	req := r.request(name, args, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Invoke(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSmallCall(b *testing.B) {
	b.Run("direct", func(b *testing.B) { benchmarkDirect(b, roleEnv+"=sdk", "echo", `{"a":1}`) })
	b.Run("provider", func(b *testing.B) {
		benchmarkProvider(b, mcpclient.Options{Command: []string{self(b)}, Env: role("sdk"), Parallel: true}, "echo", `{"a":1}`)
	})
	b.Run("provider with 3300 tools", func(b *testing.B) {
		var tools []string
		for i := range 3300 {
			tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{}}`, i))
		}
		tools = append(tools, `{"name":"echo","inputSchema":{}}`)
		benchmarkProvider(b, fault(b, "TOOLS=["+strings.Join(tools, ",")+"]"), "echo", `{"a":1}`)
	})
	b.Run("provider with 1 tool", func(b *testing.B) {
		benchmarkProvider(b, fault(b, `TOOLS=[{"name":"echo","inputSchema":{}}]`), "echo", `{"a":1}`)
	})
}

func BenchmarkTwoMegabytes(b *testing.B) {
	b.Run("direct", func(b *testing.B) { benchmarkDirect(b, roleEnv+"=sdk", "big", `{}`) })
	b.Run("provider", func(b *testing.B) {
		benchmarkProvider(b, mcpclient.Options{Command: []string{self(b)}, Env: role("sdk"), Parallel: true}, "big", `{}`)
	})
}

func BenchmarkSixteenCallers(b *testing.B) {
	b.Run("direct", func(b *testing.B) {
		cmd := exec.Command(self(b))
		cmd.Env = append(os.Environ(), roleEnv+"=sdk")
		s := direct(b, &mcp.CommandTransport{Command: cmd})
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := s.CallTool(b.Context(), &mcp.CallToolParams{Name: "echo", Arguments: json.RawMessage(`{"a":1}`)}); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("provider", func(b *testing.B) {
		r := start(b, mcpclient.Options{Command: []string{self(b)}, Env: role("sdk"), Parallel: true})
		r.ready()
		req := r.request("echo", `{"a":1}`, nil)
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := r.Invoke(b.Context(), req); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
