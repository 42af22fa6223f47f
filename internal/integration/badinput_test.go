package integration

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// refused runs a daemon that must not come up, and returns what it said.
func refused(t *testing.T, blocks string) string {
	t.Helper()
	d := launch(t, blocks)
	select {
	case <-d.ended:
	case <-time.After(patience):
		t.Fatal("it runs")
	}
	if d.cmd.ProcessState.ExitCode() == 0 {
		t.Error("it ended with 0")
	}
	return d.out.String()
}

func TestWhatKeepsTheDaemonFromStartingIsNamed(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		blocks string
		want   []string
	}{
		"a port in use": {
			fmt.Sprintf("listen {\n  http = %q\n}\n", taken.Addr()),
			[]string{taken.Addr().String(), "another program listens there", "listen { http }"},
		},
		"a state directory that cannot be": {
			fmt.Sprintf("state_dir = %q\n", filepath.Join(file, "state")), []string{file, "state_dir"},
		},
		"malformed HCL":   {"plugin \"x\" {", []string{"hermesd.hcl line", "config check"}},
		"an unknown name": {"plugin \"x\" {\n  pth = \"y\"\n}\n", []string{"pth", `Did you mean "path"`}},
		"an address of another machine": {
			"listen {\n  http = \"192.0.2.1:7433\"\n}\n", []string{"192.0.2.1", "tls"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			said := refused(t, c.blocks)
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
		})
	}
}

func TestASecondDaemonOnTheSameStateIsRefused(t *testing.T) {
	d := start(t, "")
	said := refused(t, fmt.Sprintf("state_dir = %q\n", filepath.Join(d.dir, "state")))
	if !strings.Contains(said, fmt.Sprint(d.cmd.Process.Pid)) {
		t.Errorf("it does not name the first one's pid %d:\n%s", d.cmd.Process.Pid, said)
	}
}

func TestABadProviderStopsNobodyAndSaysWhy(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, raw []byte, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, raw, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign, err := os.ReadFile(plugin("hello"))
	if err != nil {
		t.Fatal(err)
	}
	const machine = 18 // e_machine in the ELF header
	foreign[machine], foreign[machine+1] = 0xF3, 0x00
	d := start(t, fmt.Sprintf(`
plugin "hello" {
  path = %q
}
plugin "missing" {
  path = %q
}
plugin "script" {
  path = %q
}
plugin "foreign" {
  path = %q
}
plugin "closed" {
  path = %q
}
plugin "silent" {
  command       = ["sleep", "1000"]
  start_timeout = "1s"
}
mcp_server "nothing" {
  command = [%q]
}
mcp_server "chatter" {
  command         = ["sh", "-c", "echo this is no JSON; exec cat > /dev/null"]
  connect_timeout = "1s"
}
mcp_server "away" {
  url = "http://127.0.0.1:1/mcp"
}
`, plugin("hello"), filepath.Join(dir, "nowhere"), write("script", []byte("#!/bin/sh\necho I am no plugin\n"), 0o700),
		write("foreign", foreign, 0o700), write("closed", []byte("x"), 0o600), filepath.Join(dir, "nothing")))
	ready(t, d, "greet")
	for name, wants := range map[string][]string{
		"missing": {"nowhere"},
		"script":  {"I am no plugin"},
		"foreign": {"architecture"},
		"closed":  {"chmod +x"},
		"silent":  {"start_timeout"},
		"nothing": {"nothing"},
		"chatter": {"this is no JSON"},
		"away":    {"127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			var report string
			defer func() {
				if t.Failed() {
					t.Log(report)
				}
			}()
			eventually(t, "the reason is told", func() bool {
				var code int
				report, _, code = d.hermesd("plugin", "inspect", name)
				if code != 0 {
					return false
				}
				for _, want := range wants {
					if !strings.Contains(report, want) {
						return false
					}
				}
				return strings.Contains(report, `"reason"`)
			})
		})
	}
	s := d.connect(nil)
	for range 3 {
		if text, isError := call(t, s, "greet", map[string]any{"name": "Ada"}); isError || !strings.Contains(text, "Ada") {
			t.Errorf("the good one: %s", text)
		}
	}
	// The agent is told of what it lacks.
	if text, _ := call(t, s, "tool_search", map[string]any{"queries": []string{"zzz qqq"}}); !strings.Contains(text, `"missing"`) {
		t.Logf("a search without a match: %s", text)
	}
	_, _, code := d.hermesd("doctor")
	if code != 1 {
		t.Errorf("doctor ended with %d although there are problems", code)
	}
}

func TestTwoProvidersWithOneToolNameAreBothRefused(t *testing.T) {
	blocks := ""
	for _, name := range []string{"one", "two"} {
		blocks += fmt.Sprintf("plugin %q {\n  path = %q\n}\n", name, plugin("hello"))
	}
	d := start(t, blocks+fmt.Sprintf("plugin \"three\" {\n  path   = %q\n  prefix = true\n}\n", plugin("hello")))
	ready(t, d, "three__greet")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	eventually(t, "the collision is told", func() bool {
		out, _, _ := d.hermesd("doctor")
		return strings.Contains(out, "greet") && strings.Contains(out, "one") && strings.Contains(out, "two") && strings.Contains(out, "prefix = true")
	})
	if err := ctx.Err(); err != nil {
		t.Error(err)
	}
	if text, isError := call(t, d.connect(nil), "greet", map[string]any{"name": "Ada"}); !isError {
		t.Errorf("a refused name answered: %s", text)
	}
}
