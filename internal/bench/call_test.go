package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/daemon"
)

func TestMain(m *testing.M) {
	procgroup.ShimMain()
	os.Exit(m.Run())
}

// build compiles a program of this repository into dir.
func build(b *testing.B, dir, pkg string) string {
	b.Helper()
	path := filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-o", path, pkg)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	return path
}

// patience bounds everything that is waited for.
const patience = time.Minute

// serve runs a daemon in this process.
func serve(b *testing.B, blocks string) *daemon.Daemon {
	b.Helper()
	dir := b.TempDir()
	cfg, diags := config.Parse(filepath.Join(dir, "hermesd.hcl"), []byte(fmt.Sprintf("state_dir = %q\nlisten {\n  http  = \"127.0.0.1:0\"\n  admin = %q\n}\n", filepath.Join(dir, "state"), filepath.Join(dir, "a.sock"))+blocks), nil)
	if diags.HasErrors() {
		b.Fatal(diags.Err())
	}
	d, err := daemon.New(&daemon.Options{Config: cfg, Version: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	select {
	case <-d.Settled(): // its providers are there: calls that come too early would count as failing ones
	case err := <-ended:
		b.Fatal(err)
	}
	return d
}

// waitFor calls until the tool answers: providers start behind the daemon.
func waitFor(b *testing.B, call func() error) {
	b.Helper()
	deadline := time.Now().Add(patience)
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		err := call()
		if err == nil {
			tick.Stop()
			return
		}
		if time.Now().After(deadline) {
			b.Fatal(err)
		}
	}
}

func connect(b *testing.B, t sdk.Transport) *sdk.ClientSession {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, t, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Log(err)
		}
	})
	return s
}

// run measures a call with one caller and with 16.
func run(b *testing.B, call func() error) {
	waitFor(b, call)
	b.Run("callers=1", func(b *testing.B) {
		for b.Loop() {
			if err := call(); err != nil {
				b.Fatal(err)
			}
		}
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

func sdkCall(s *sdk.ClientSession, name string, args any) func() error {
	return func() error {
		result, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: name, Arguments: args})
		if err == nil && result.IsError {
			err = fmt.Errorf("%s answered with an error: %+v", name, result.Content[0])
		}
		return err
	}
}

// A warm tool_call of a small plugin tool, from the bridge to the provider and back, audit on, must not be slower than the
// same tool as a bare MCP server on stdio, called by the Go SDK.
func BenchmarkCall(b *testing.B) {
	dir := b.TempDir()
	bare, hello := build(b, dir, "./internal/bench/bareserver"), build(b, dir, "./examples/plugins/hello")
	through := map[string]any{"calls": []any{map[string]any{"name": "greet", "arguments": map[string]any{"name": "Ada"}}}}

	b.Run("bare MCP server on stdio", func(b *testing.B) {
		s := connect(b, &sdk.CommandTransport{Command: exec.Command(bare)})
		run(b, sdkCall(s, "greet", map[string]any{"name": "Ada"}))
	})
	for _, sync := range []string{"process", "power"} {
		d := serve(b, fmt.Sprintf("audit {\n  sync = %q\n}\nguard {\n  calls_per_minute = 0\n  concurrent_calls = 0\n}\nplugin \"hello\" {\n  path = %q\n}\n", sync, hello))
		b.Run("hermesd, tool_call, audit "+sync, func(b *testing.B) {
			args, err := json.Marshal(through)
			if err != nil {
				b.Fatal(err)
			}
			run(b, func() error {
				result, err := d.Call(context.Background(), "", "tool_call", args)
				if err == nil && result.IsError {
					err = fmt.Errorf("it answered %s", result.Text())
				}
				return err
			})
		})
		b.Run("hermesd over HTTP, tool_call, audit "+sync, func(b *testing.B) {
			kept := &http.Transport{MaxIdleConnsPerHost: 16} // the default keeps two, and would measure new connections
			b.Cleanup(kept.CloseIdleConnections)
			s := connect(b, &sdk.StreamableClientTransport{Endpoint: d.Addresses().HTTP + "/mcp", HTTPClient: &http.Client{Transport: kept}})
			run(b, sdkCall(s, "tool_call", through))
		})
	}
}
