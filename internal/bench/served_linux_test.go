package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"github.com/hermesd/hermesd/search"
	"github.com/hermesd/hermesd/search/searchtest"
)

const (
	// giantTools is how many tools the one large server has.
	giantTools = 3300
	// warmTools is how many tools are called, of all servers in turn: few enough that each has been called before, since a
	// tool's first call compiles its schema.
	warmTools = 400
)

// BenchmarkServed is what a call costs a process, and what it holds in memory, with real processes over HTTP: the bare server
// with the tools of one service, hermesd before forty such servers on stdio, and hermesd before one server of 3,300 tools.
// Only the process that is called is counted, not its children and not the client.
func BenchmarkServed(b *testing.B) {
	set := searchtest.Synthetic()
	dir := b.TempDir()

	b.Run("bare server, 80 tools", func(b *testing.B) {
		source := set.Docs[0].Source
		p := launch(b, "listening", bareServer(b), "-http", "-tools", toolsFile(b, dir, source, set.Of(source).Docs))
		b.Cleanup(func() { p.end(b) })
		sessions := connectAll(b, p.url)
		runCounted(b, p, func(n int) error {
			d := set.Docs[n*31%80]
			return sdkCall(sessions[n%manyCallers], d.OwnName, arguments(n))()
		})
	})
	for _, kind := range []string{"40 servers of 80 tools", "one server of 3300 tools"} {
		b.Run("hermesd, "+kind, func(b *testing.B) {
			docs, blocks := set.Docs, ""
			if kind == "40 servers of 80 tools" {
				for _, source := range set.Kinds() {
					blocks += serverBlock(b, source, toolsFile(b, dir, source, set.Of(source).Docs))
				}
			} else {
				docs = giant(set)
				blocks = serverBlock(b, "giant", toolsFile(b, dir, "giant", docs))
			}
			p := daemonProcess(b, b.TempDir(), unguarded+blocks)
			b.Cleanup(func() { p.end(b) })
			sessions := connectAll(b, p.url)
			call := func(n int) error {
				call := map[string]any{"name": docs[n%warmTools*31%len(docs)].Name, "arguments": arguments(n)}
				return sdkCall(sessions[n%manyCallers], "tool_call", map[string]any{"calls": []any{call}})()
			}
			for n := range warmTools {
				waitFor(b, func() error { return call(n) })
			}
			rest(b, p)
			atStart := peak(b, p)
			forgetPeak(b, p)
			b.Run("call", func(b *testing.B) { runCounted(b, p, call) })
			b.Run("search", func(b *testing.B) {
				runCounted(b, p, func(n int) error {
					q := set.Queries[n*37%len(set.Queries)].Query
					return sdkCall(sessions[n%manyCallers], "tool_search", map[string]any{"queries": []string{q}, "limit": 5})()
				})
			})
			b.Run("memory", func(b *testing.B) {
				for b.Loop() {
					b.ReportMetric(float64(peak(b, p))/1e6, "MB")
					b.ReportMetric(float64(atStart)/1e6, "first-start-MB")
				}
			})
		})
	}
}

// giant is the synthetic catalog as one server has it, made up to its number of tools.
func giant(set *searchtest.Set) []search.Document {
	var docs []search.Document
	for i := range giantTools {
		d := set.Docs[i%len(set.Docs)]
		d.OwnName = d.Source + "_" + d.OwnName
		if i >= len(set.Docs) {
			d.OwnName += "_again"
		}
		d.Source, d.Name = "giant", "mcp__giant__"+d.OwnName
		docs = append(docs, d)
	}
	return docs
}

func arguments(n int) map[string]string { return map[string]string{"id": fmt.Sprint("item-", n)} }

func toolsFile(b *testing.B, dir, name string, docs []search.Document) string {
	b.Helper()
	var tools []*sdk.Tool
	for _, d := range docs {
		tools = append(tools, &sdk.Tool{Name: d.OwnName, Description: d.Description, InputSchema: d.Parameters})
	}
	raw, err := json.Marshal(tools)
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(dir, name+".json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		b.Fatal(err)
	}
	return file
}

func serverBlock(b *testing.B, name, tools string) string {
	b.Helper()
	return fmt.Sprintf("mcp_server %q {\n  command  = [%q, \"-tools\", %q]\n  parallel = true\n}\n", name, bareServer(b), tools)
}

// connectAll makes a session for every caller.
func connectAll(b *testing.B, url string) (sessions [manyCallers]*sdk.ClientSession) {
	b.Helper()
	for i := range sessions {
		sessions[i] = overHTTP(b, url, stateless)
	}
	return sessions
}

// runCounted is run with the CPU time that the process takes for a call, in milliseconds.
func runCounted(b *testing.B, p *process, call func(n int) error) {
	b.Helper()
	waitFor(b, func() error { return call(0) })
	runEach(b, call, func(b *testing.B, load func()) {
		before := cpu(b, p)
		load()
		b.ReportMetric((cpu(b, p)-before).Seconds()*1e3/float64(b.N), "cpu-ms/call")
	})
}

// cpu is the processor time that a process has used, its ended threads included (clock_getcpuclockid(3)).
func cpu(b *testing.B, p *process) time.Duration {
	b.Helper()
	const ofWholeProcess = 2
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^p.Process.Pid<<3|ofWholeProcess), &at); err != nil {
		b.Fatal(err)
	}
	return time.Duration(at.Nano())
}

// rest waits until a process has next to nothing left to do, such as an index to build.
func rest(b *testing.B, p *process) {
	b.Helper()
	const window = 200 * time.Millisecond
	tick := time.NewTicker(window)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for before := cpu(b, p); ; {
		<-tick.C
		now := cpu(b, p)
		if now-before < window/50 {
			return
		}
		if before = now; time.Now().After(deadline) {
			b.Fatal("the process does not come to rest")
		}
	}
}

// peak is the most that a process has had resident in memory, in bytes.
func peak(b *testing.B, p *process) int64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		if rest, ok := strings.CutPrefix(string(line), "VmHWM:"); ok {
			var kib int64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				b.Fatal(err)
			}
			return kib << 10
		}
	}
	b.Fatal("the kernel tells no VmHWM")
	return 0
}

// forgetPeak makes a process's peak what it has now (proc_pid_clear_refs(5)).
func forgetPeak(b *testing.B, p *process) {
	b.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.Process.Pid), []byte("5"), 0); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRecovery is how long the tools of a provider do not answer after its process was killed.
func BenchmarkRecovery(b *testing.B) {
	for name, block := range map[string]string{
		"plugin":     fmt.Sprintf("plugin \"mark\" {\n  path = %q\n}\n", hello(b)),
		"MCP server": fmt.Sprintf("mcp_server \"mark\" {\n  command = [%q]\n  prefix  = \"\"\n}\n", bareServer(b)),
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() { // a daemon for each, since one holds back a provider that dies often
				p := daemonProcess(b, b.TempDir(), unguarded+block)
				call := sdkCall(overHTTP(b, p.url, stateless), "greet", map[string]any{"name": "Ada"})
				waitFor(b, call)
				if err := unix.Kill(processOf(b, p, "mark"), unix.SIGKILL); err != nil {
					b.Fatal(err)
				}
				killed := time.Now()
				waitFor(b, call)
				took = append(took, time.Since(killed))
				p.end(b)
			}
			times(b, took)
		})
	}
}

// processOf is the process id of a provider of the daemon.
func processOf(b *testing.B, p *process, name string) int {
	b.Helper()
	out, err := p.command("plugin", "list", "--json").Output()
	if err != nil {
		b.Fatal(err)
	}
	var list []struct {
		Name string `json:"name"`
		PID  int    `json:"pid"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		b.Fatal(err)
	}
	for _, one := range list {
		if one.Name == name && one.PID > 0 {
			return one.PID
		}
	}
	b.Fatalf("no process of %s in %s", name, out)
	return 0
}
