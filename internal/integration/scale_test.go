package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Guards fault metamcp 350: a hundred servers over standard streams, started at once, fail. They start a few at a time, and
// the next daemon knows their tools without a process.
func TestAHundredStdioServersMetamcp350(t *testing.T) {
	const servers = 100
	dir := t.TempDir()
	starts := filepath.Join(dir, "starts")
	var blocks strings.Builder
	var names []string
	command := tinyServer(t, false)
	for i := range servers {
		fmt.Fprintf(&blocks, "mcp_server \"s%d\" {\n  command     = %s\n  env         = { STARTS = %q }\n  allow_write = [%q]\n}\n", i, command, starts, dir)
		names = append(names, fmt.Sprintf("mcp__s%d__which", i))
	}
	first := start(t, blocks.String())
	begun := time.Now()
	ready(t, first, names...)
	t.Logf("%d servers after %v", servers, time.Since(begun))
	began, ended, most := startsIn(t, starts)
	if began != servers || ended != servers {
		t.Errorf("%d starts, %d of them to their end, want %d", began, ended, servers)
	}
	if bound := 2 * runtime.NumCPU(); most > bound {
		t.Errorf("%d servers started at one time, want at most %d", most, bound)
	}
	first.stop()

	next := launchConfig(t, first.dir, first.config)
	next.awaitReady()
	begun = time.Now()
	ready(t, next, names...)
	t.Logf("from the stored catalog after %v", time.Since(begun))
	if n := len(descendants(t, next.cmd.Process.Pid)); n != 0 {
		t.Errorf("%d processes run though nobody has called anything", n)
	}
	s := next.connect(nil)
	if text, isError := call(t, s, "mcp__s42__which", nil); isError {
		t.Error(text)
	}
	if again, _, _ := startsIn(t, starts); again != servers+1 {
		t.Errorf("one call started %d servers", again-servers)
	}
}

// startsIn reads what tiny servers noted: how many began to start, how many were asked for their tools, and how many were
// between the two at one time.
func startsIn(t *testing.T, file string) (began, ended, most int) {
	t.Helper()
	noted, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(noted)) {
		if line == "+\n" {
			began++
		} else {
			ended++
		}
		most = max(most, began-ended)
	}
	return began, ended, most
}

// Guards fault toolhive 5847: the set of tools is indexed again for every session. Fifty sessions share one.
func TestFiftySessionsShareOneIndexToolhive5847(t *testing.T) {
	const sessions, tools, bound = 50, 2000, 48 << 20
	names := make([]string, tools)
	for i := range names {
		names[i] = fmt.Sprintf("work_%d_%s", i, strings.Repeat(string(rune('a'+i%26)), 40))
	}
	u := newUpstream(t)
	u.up(offering(names...))
	d := start(t, "tools {\n  tool_search {\n    enabled = \"on\"\n  }\n}\n"+u.block("big"))
	ready(t, d, "mcp__big__"+names[tools-1])
	var open []*sdk.ClientSession
	visit := func(n int) {
		for range n {
			s := d.connect(nil)
			open = append(open, s)
			if list, err := s.ListTools(t.Context(), nil); err != nil || len(list.Tools) == 0 {
				t.Fatal(list, err)
			}
			if text, isError := call(t, s, "tool_search", map[string]any{"queries": []string{"work " + names[len(open)]}}); isError || !strings.Contains(text, names[len(open)]) {
				t.Fatal(text)
			}
		}
	}
	visit(5)
	before := resident(t, d.cmd.Process.Pid)
	begun := time.Now()
	visit(sessions)
	took := time.Since(begun)
	var grown int
	eventually(t, fmt.Sprintf("%d sessions take no more than %d MiB, once the daemon has come to rest", sessions, bound>>20), func() bool {
		grown = resident(t, d.cmd.Process.Pid) - before
		return grown <= bound
	})
	t.Logf("%d sessions over %d tools: %d KiB more than %d MiB, %v", sessions, tools, grown>>10, before>>20, took)
}
