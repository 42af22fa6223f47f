package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/testbin"
)

const (
	servers        = 40
	toolsPerServer = 5 // and greet, which bareserver always has
)

// startsAtOnce is how many providers may start at the same time: two for each core.
func startsAtOnce() int { return 2 * runtime.NumCPU() }

// fleet is a configuration of many MCP servers, each of which notes its start and then waits at a named pipe to be let on.
type fleet struct {
	dir    string
	blocks string
	gates  map[string]*os.File
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{dir: t.TempDir(), gates: map[string]*os.File{}}
	server := testbin.Build(t, "internal/bench/bareserver")
	for n := range servers {
		name := fmt.Sprintf("s%02d", n)
		var tools []*sdk.Tool
		for i := range toolsPerServer {
			tools = append(tools, &sdk.Tool{Name: fmt.Sprintf("tool_%d", i), Description: fmt.Sprintf("Tool %d of %s.", i, name), InputSchema: json.RawMessage(`{"type":"object"}`)})
		}
		raw, err := json.Marshal(tools)
		if err != nil {
			t.Fatal(err)
		}
		file, gate := filepath.Join(f.dir, name+".json"), filepath.Join(f.dir, name+".gate")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(gate, 0o600); err != nil {
			t.Fatal(err)
		}
		if f.gates[name], err = os.OpenFile(gate, os.O_RDWR, 0); err != nil { // for both, so that it does not wait for a reader
			t.Fatal(err)
		}
		t.Cleanup(func() { f.gates[name].Close() })
		f.blocks += fmt.Sprintf(`
mcp_server %q {
  command         = ["sh", "-c", "[ -n \"$BESIDE\" ] || { echo %s >> started; read go < %s.gate; }; exec \"$@\"", "sh", %q, "-tools", %q]
  cwd             = %q
  isolation       = "none"
  connect_timeout = "2m"
}
`, name, name, name, server, file, f.dir)
	}
	return f
}

// started counts the starts of each server.
func (f *fleet) started(t *testing.T) map[string]int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(f.dir, "started"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for name := range strings.FieldsSeq(string(raw)) {
		counts[name]++
	}
	return counts
}

// letOn lets one process of a server go on.
func (f *fleet) letOn(t *testing.T, name string) {
	t.Helper()
	if _, err := f.gates[name].WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
}

// firstStart is one with forty servers, of which some are slow, while agents already call and another program discovers the
// same servers. pick says which of the servers that wait is let on next. It returns the catalog as an agent sees it.
func firstStart(t *testing.T, pick func(waiting []string) string) string {
	t.Helper()
	f := newFleet(t)
	d := start(t, "guard {\n  calls_per_minute = 0\n  concurrent_calls = 0\n}\ntools {\n  tool_search = false\n}\n"+f.blocks)
	s := d.connect(nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var others sync.WaitGroup
	defer others.Wait()
	for range 2 {
		others.Go(func() { // what it is told depends on how far a server is; that it starts no second process is seen below
			for name := range f.gates {
				if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "mcp__" + name + "__greet", Arguments: map[string]any{"name": "Ada"}}); err != nil && ctx.Err() != nil {
					t.Error(err)
				}
			}
		})
	}
	beside := d.beside(t, f)
	others.Go(func() {
		for _, name := range []string{"s00", "s20", "s39"} {
			if out, errs, code := hermesd(t, beside, "mcp-server", "test", name); code != 0 {
				t.Errorf("mcp-server test %s: %s%s", name, out, errs)
			}
		}
	})
	letOn := map[string]bool{}
	for len(letOn) < servers {
		var waiting []string
		eventually(t, "as many wait as may start at once", func() bool {
			waiting = slices.Sorted(maps.Keys(f.started(t)))
			waiting = slices.DeleteFunc(waiting, func(name string) bool { return letOn[name] })
			return len(waiting) >= min(startsAtOnce(), servers-len(letOn))
		})
		if len(waiting) > startsAtOnce() {
			t.Fatalf("%d start at once, at most %d may: %v", len(waiting), startsAtOnce(), waiting)
		}
		name := pick(waiting)
		letOn[name] = true
		f.letOn(t, name)
	}
	var tools []struct {
		Name   string `json:"name"`
		Source string `json:"source_name"`
	}
	eventually(t, "all tools are there", func() bool {
		out, _, code := d.hermesd("tool", "list", "--all", "--json")
		return code == 0 && json.Unmarshal([]byte(out), &tools) == nil && len(tools) >= servers*(toolsPerServer+1)
	})
	counts := map[string]int{}
	for _, one := range tools {
		counts[one.Source]++
	}
	for name, starts := range f.started(t) {
		if starts != 1 || counts[name] != toolsPerServer+1 {
			t.Errorf("%s was started %d times and has %d tools", name, starts, counts[name])
		}
	}
	if out := d.out.String(); strings.Contains(out, "changed") {
		t.Errorf("a trusted tool counts as changed:\n%s", out)
	}
	return listed(t, s)
}

// beside is the daemon's configuration for another program, whose servers do not wait.
func (d *running) beside(t *testing.T, f *fleet) (config string) {
	t.Helper()
	raw, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	config = filepath.Join(f.dir, "beside.hcl")
	text := strings.ReplaceAll(string(raw), "  isolation       =", "  env             = { BESIDE = \"1\" }\n  isolation       =")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

func TestAFirstStartOfFortyServersLosesNoToolAndIsTheSameInAnyOrder(t *testing.T) {
	first := firstStart(t, func(waiting []string) string { return waiting[0] })
	last := firstStart(t, func(waiting []string) string { return waiting[len(waiting)-1] }) // the first ones are the slow ones here
	if first != last {
		t.Errorf("the order in which servers answer changed the catalog:\n%s\n%s", first, last)
	}
	if n := strings.Count(first, `"name":"mcp__`); n != servers*(toolsPerServer+1) {
		t.Errorf("an agent sees %d tools", n)
	}
}
