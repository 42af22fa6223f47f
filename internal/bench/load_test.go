package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/internal/testbin"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/daemon"
)

func TestMain(m *testing.M) {
	procgroup.ShimMain()
	os.Exit(m.Run())
}

// patience bounds everything that is waited for.
const patience = time.Minute

// unguarded takes the limits away that a benchmark would run into.
const unguarded = "guard {\n  calls_per_minute = 0\n  concurrent_calls = 0\n}\n"

func bareServer(b *testing.B) string { return testbin.Build(b, "internal/bench/bareserver") }

func hello(b *testing.B) string { return testbin.Build(b, "examples/plugins/hello") }

// settings are a configuration with everything below dir.
func settings(dir, blocks string) string {
	return fmt.Sprintf("state_dir = %q\nlisten {\n  http  = \"127.0.0.1:0\"\n  admin = %q\n}\n", filepath.Join(dir, "state"), filepath.Join(dir, "a.sock")) + blocks
}

// serve runs a daemon in this process.
func serve(b *testing.B, blocks string) *daemon.Daemon {
	b.Helper()
	dir := b.TempDir()
	cfg, diags := config.Parse(filepath.Join(dir, "hermesd.hcl"), []byte(settings(dir, blocks)), nil)
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

// process is a program that serves.
type process struct {
	*exec.Cmd
	config string        // of a daemon
	url    string        // what it says after prefix
	took   time.Duration // from its start to its first line
}

// daemonProcess runs hermesd in a process of its own, with everything below dir.
func daemonProcess(b *testing.B, dir, blocks string) *process {
	b.Helper()
	file := filepath.Join(dir, "hermesd.hcl")
	if err := os.WriteFile(file, []byte(settings(dir, blocks)), 0o600); err != nil {
		b.Fatal(err)
	}
	p := launch(b, "MCP over HTTP", binary(b), "serve", "-c", file)
	p.config = file
	return p
}

// binary is hermesd, with its shim beside it.
func binary(b *testing.B) string {
	b.Helper()
	testbin.Build(b, "cmd/hermesd-shim")
	return testbin.Build(b, "cmd/hermesd")
}

// launch starts a program and waits for the line that begins with prefix.
func launch(b *testing.B, prefix, program string, args ...string) *process {
	b.Helper()
	p := &process{Cmd: exec.Command(program, args...)}
	out, err := p.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	if err := p.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { // nothing is left of a benchmark that fails
		if p.ProcessState == nil {
			if err := errors.Join(p.Process.Kill(), p.Wait()); err != nil {
				b.Log(err)
			}
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if p.took == 0 {
			p.took = time.Since(begun)
		}
		if rest, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), prefix); ok {
			p.url = strings.TrimSpace(rest)
			go io.Copy(io.Discard, out) //nolint:errcheck // ends with the process
			return p
		}
	}
	b.Fatalf("%s ended before it said %q: %v", program, prefix, p.Wait())
	return nil
}

// command is one of the daemon's command line.
func (p *process) command(args ...string) *exec.Cmd {
	return exec.Command(p.Path, append(args, "-c", p.config)...)
}

// end stops it as an operator would.
func (p *process) end(b *testing.B) {
	b.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	if err := p.Wait(); err != nil && p.config != "" {
		b.Fatal(err)
	}
}

// waitFor calls until the tool answers: providers start behind the daemon.
func waitFor(b *testing.B, call func() error) {
	b.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		err := call()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.Fatal(err)
		}
	}
}

// connect makes a session that speaks a version of the protocol.
func connect(b *testing.B, t sdk.Transport, version string) *sdk.ClientSession {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: version})
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

// overHTTP makes a session that keeps as many connections as there are callers; the default keeps two, and would measure
// new connections.
func overHTTP(b *testing.B, endpoint, version string) *sdk.ClientSession {
	b.Helper()
	kept := &http.Transport{MaxIdleConnsPerHost: manyCallers}
	b.Cleanup(kept.CloseIdleConnections)
	return connect(b, &sdk.StreamableClientTransport{Endpoint: endpoint, HTTPClient: &http.Client{Transport: kept}, DisableStandaloneSSE: true}, version)
}

// manyCallers is how many callers there are where there is not one.
const manyCallers = 16

// run measures a call with one caller and with many.
func run(b *testing.B, call func() error) {
	b.Helper()
	waitFor(b, call)
	runEach(b, func(int) error { return call() }, func(_ *testing.B, load func()) { load() })
}

// runEach is run with calls that know their number; around may measure what it runs.
func runEach(b *testing.B, call func(n int) error, around func(b *testing.B, load func())) {
	b.Helper()
	for _, callers := range []int{1, manyCallers} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			around(b, func() { load(b, callers, call) })
		})
	}
}

// load makes b.N calls and reports their times and how many a second there were.
func load(b *testing.B, callers int, call func(n int) error) {
	b.Helper()
	var next atomic.Int64
	took := make([][]time.Duration, callers)
	var all sync.WaitGroup
	b.ResetTimer()
	for i := range callers {
		all.Go(func() {
			for n := int(next.Add(1)); n <= b.N; n = int(next.Add(1)) {
				begun := time.Now()
				if err := call(n); err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(begun))
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	times(b, slices.Concat(took...))
}

// times reports the shortest, the median and the ninth of ten.
func times(b *testing.B, took []time.Duration) {
	if len(took) == 0 {
		return // it has failed
	}
	slices.Sort(took)
	for unit, at := range map[string]int{"min-ms": 0, "p50-ms": len(took) / 2, "p90-ms": len(took) * 9 / 10} { // min: what it is where others leave the machine alone
		b.ReportMetric(float64(took[at].Nanoseconds())/1e6, unit)
	}
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

// daemonCall calls a tool at the daemon's own entry.
func daemonCall(d *daemon.Daemon, name string, args []byte) func() error {
	return func() error {
		result, err := d.Call(context.Background(), "", name, args)
		if err == nil && result.IsError {
			err = fmt.Errorf("%s answered %s", name, result.Text())
		}
		return err
	}
}
