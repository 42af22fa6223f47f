package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/testenv"
	"github.com/hermesd/hermesd/internal/testnode"
)

// pid is the process of a provider, 0 if none runs.
func (d *running) pid(name string) int {
	d.t.Helper()
	out, errs, code := d.hermesd("plugin", "list", "--json")
	if code != 0 {
		d.t.Fatalf("plugin list: %s", errs)
	}
	var list []struct {
		Name string `json:"name"`
		PID  int    `json:"pid"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		d.t.Fatal(err)
	}
	for _, p := range list {
		if p.Name == name {
			return p.PID
		}
	}
	d.t.Fatalf("no provider %s in %s", name, out)
	return 0
}

// descendants are the processes below one, as the kernel knows them.
func descendants(t *testing.T, root int) []int {
	t.Helper()
	parent := map[int]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Skip("there is no /proc here")
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // it has gone
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if fields[0] == "Z" {
			continue
		}
		if parent[pid], err = strconv.Atoi(fields[1]); err != nil {
			t.Fatal(err)
		}
	}
	var list []int
	for pid := range parent {
		for above := parent[pid]; above > 1; above = parent[above] {
			if above == root {
				list = append(list, pid)
				break
			}
		}
	}
	return list
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil && !zombie(pid) }

func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	return strings.HasPrefix(strings.TrimSpace(string(stat[strings.LastIndexByte(string(stat), ')')+1:])), "Z")
}

func TestAKilledProviderHarmsNobodyAndComesBack(t *testing.T) {
	d := start(t, fmt.Sprintf(`
tools {
  tool_search = false
}
plugin "hello" {
  path = %q
}
plugin "files" {
  path = %q
  config {
    root = %q
  }
}
mcp_server "everything" {
  command = [%q, %q, "stdio"]
}
`, plugin("hello"), plugin("files"), t.TempDir(), testnode.Node(t), script(t, "server-everything")))
	ready(t, d, "greet", "files_list", "mcp__everything__echo")
	s := d.connect(nil)
	works := func(name string, args map[string]any) bool {
		_, isError := call(t, s, name, args)
		return !isError
	}
	targets := map[string]struct {
		tool string
		args map[string]any
	}{
		"hello":      {"greet", map[string]any{"name": "Ada"}},
		"everything": {"mcp__everything__echo", map[string]any{"message": "hi"}},
	}
	for name, target := range targets {
		t.Run(name, func(t *testing.T) {
			if !works(target.tool, target.args) {
				t.Fatal("it does not work before it is killed")
			}
			old := d.pid(name)
			if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed := time.Now()
			if !works("files_list", map[string]any{}) {
				t.Error("another provider's tool failed")
			}
			eventually(t, "the tool answers again", func() bool { return works(target.tool, target.args) })
			took := time.Since(killed)
			t.Logf("%s answered again after %v", name, took.Round(time.Millisecond))
			if bar := time.Second; testenv.Quiet() && took > bar {
				t.Errorf("the bar is %v", bar)
			}
			if now := d.pid(name); now == old || now == 0 {
				t.Errorf("pid was %d and is %d", old, now)
			}
		})
	}
}

func TestNothingOutlivesAKilledDaemon(t *testing.T) {
	d := start(t, fmt.Sprintf(`
plugin "hello" {
  path = %q
}
mcp_server "everything" {
  command = ["sh", "-c", "\"$@\"; true", "sh", %q, %q, "stdio"]
}
mcp_server "straggler" {
  command = ["sh", "-c", "setsid sleep 1000 & exec \"$@\"", "sh", %q, %q, "stdio"]
}
`, plugin("hello"), testnode.Node(t), script(t, "server-everything"), testnode.Node(t), script(t, "server-everything")))
	ready(t, d, "greet", "mcp__everything__echo", "mcp__straggler__echo")
	children := descendants(t, d.cmd.Process.Pid)
	if len(children) < 4 {
		t.Fatalf("only these children run: %v", children)
	}
	d.kill()
	killed := time.Now()
	eventually(t, "all children are gone", func() bool {
		for _, pid := range children {
			if alive(pid) {
				return false
			}
		}
		return true
	})
	if took, bar := time.Since(killed), time.Second; testenv.Quiet() && took > bar {
		t.Errorf("the last child was gone after %v; the bar is %v", took, bar)
	}
}

func TestEndingTheDaemonEndsItsChildren(t *testing.T) {
	d := start(t, fmt.Sprintf("plugin \"hello\" {\n  path = %q\n}\n", plugin("hello")))
	ready(t, d, "greet")
	children := descendants(t, d.cmd.Process.Pid)
	if len(children) == 0 {
		t.Fatal("no child runs")
	}
	d.stop()
	for _, pid := range children {
		if alive(pid) {
			t.Errorf("process %d is still there: %s", pid, commandLine(pid))
		}
	}
	if code := d.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, d.out)
	}
}

func commandLine(pid int) string {
	out, err := exec.Command("ps", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func TestAHangupHarmsNobody(t *testing.T) {
	d := start(t, fmt.Sprintf("plugin \"hello\" {\n  path = %q\n}\n", plugin("hello")))
	ready(t, d, "greet")
	if err := d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the hangup is told", func() bool { return strings.Contains(d.out.String(), "SIGHUP") })
	if text, isError := call(t, d.connect(nil), "greet", map[string]any{"name": "Ada"}); isError {
		t.Errorf("after it: %s", text)
	}
}
