package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/testnode"
)

// world is a daemon with plugins and three real MCP servers: two over stdio, one over HTTP.
func world(t *testing.T) *running {
	t.Helper()
	node := testnode.Node(t)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "note.txt"), []byte("from the file"), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, fmt.Sprintf(`
tools {
  tool_search {
    enabled = "on"
  }
}
plugin "files" {
  path  = %q
  trust = "builtin"
  config {
    root = %q
  }
}
plugin "hello" {
  path = %q
}
mcp_server "everything" {
  command = [%q, %q, "stdio"]
}
mcp_server "filesystem" {
  command = [%q, %q, %q]
}
mcp_server "remote" {
  url = %q
}
`, plugin("files"), folder, plugin("hello"),
		node, script(t, "server-everything"), node, script(t, "server-filesystem"), folder, everythingOverHTTP(t)))
}

// script is the entry point of one of the reference servers.
func script(t *testing.T, name string) string {
	return filepath.Join(testnode.Modules(t), "@modelcontextprotocol", name, "dist", "index.js")
}

// everythingOverHTTP starts server-everything on a free port and returns its address.
func everythingOverHTTP(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	out := &output{changed: make(chan struct{})}
	cmd := exec.Command(testnode.Node(t), script(t, "server-everything"), "streamableHttp")
	cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Log(err)
		}
		if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
			t.Log(err)
		}
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	eventually(t, "server-everything listens", func() bool {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	return "http://" + address + "/mcp"
}

// sources waits until every provider of the world has told its tools.
func ready(t *testing.T, d *running, names ...string) {
	t.Helper()
	eventually(t, "these tools are known: "+strings.Join(names, ", "), func() bool {
		out, _, code := d.hermesd("tool", "list", "--all", "--json")
		return code == 0 && !slices.ContainsFunc(names, func(name string) bool { return !strings.Contains(out, `"`+name+`"`) })
	})
}

var worldTools = []string{"files_read", "greet", "mcp__everything__echo", "mcp__filesystem__read_text_file", "mcp__remote__echo"}

func TestAClientOfTheOfficialSDKDoesTheMainJob(t *testing.T) {
	d := world(t)
	ready(t, d, worldTools...)
	s := d.connect(nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()

	var names []string
	for tool, err := range s.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	for _, want := range []string{"files_read", "tool_search", "tool_describe", "tool_call"} {
		if !slices.Contains(names, want) {
			t.Errorf("the list lacks %s: %v", want, names)
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, "mcp__") || name == "greet" {
			t.Errorf("%s should be deferred", name)
		}
	}

	text, isError := call(t, s, "tool_search", map[string]any{"queries": []string{"echo a message back", "greet somebody by name"}})
	if isError || !strings.Contains(text, `"mcp__everything__echo"`) || !strings.Contains(text, `"greet"`) {
		t.Errorf("search: %s", text)
	}
	text, isError = call(t, s, "tool_describe", map[string]any{"names": []string{"mcp__everything__echo", "greet"}})
	if isError || !strings.Contains(text, `"message"`) || !strings.Contains(text, `"name"`) {
		t.Errorf("describe: %s", text)
	}
	cases := map[string]struct {
		tool, want string
		args       map[string]any
	}{
		"a tool in a plugin process":       {"greet", "Ada", map[string]any{"name": "Ada"}},
		"a tool of an MCP server on stdio": {"mcp__everything__echo", "Echo: hi", map[string]any{"message": "hi"}},
		"a tool of another one":            {"mcp__filesystem__list_allowed_directories", "Allowed", nil},
		"a tool of an MCP server on HTTP":  {"mcp__remote__echo", "Echo: hi", map[string]any{"message": "hi"}},
		"a core tool through the bridge":   {"files_read", "from the file", map[string]any{"path": "note.txt"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			entry := map[string]any{"name": c.tool}
			if c.args != nil {
				entry["arguments"] = c.args
			}
			text, isError := call(t, s, "tool_call", map[string]any{"calls": []any{entry}})
			if isError || !strings.Contains(text, c.want) {
				t.Errorf("through the bridge: %s", text)
			}
			text, isError = call(t, s, c.tool, c.args)
			if isError || !strings.Contains(text, c.want) {
				t.Errorf("directly: %s", text)
			}
		})
	}
}

// The Inspector is the command line of the MCP project: a program that is not ours.
func TestTheInspectorDoesTheMainJob(t *testing.T) {
	d := world(t)
	ready(t, d, worldTools...)
	inspect := func(t *testing.T, target []string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		line := append([]string{"--cli"}, target...)
		cmd := exec.CommandContext(ctx, testnode.Bin(t, "mcp-inspector"), append(line, args...)...)
		cmd.Env = append(testnode.Env(t), "MCP_CATALOG_PATH="+filepath.Join(t.TempDir(), "catalog.json"), "HOME="+t.TempDir())
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("inspector %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	targets := map[string][]string{
		"over HTTP":  {d.url + "/mcp", "--transport", "http"},
		"over stdio": {filepath.Join(bin, "hermesd"), "mcp", "-c", d.config},
	}
	for name, target := range targets {
		t.Run(name, func(t *testing.T) {
			if name == "over stdio" {
				// The Inspector takes flags of the server's command after "--" only.
				target = []string{"--", filepath.Join(bin, "hermesd"), "mcp", "-c", d.config}
			}
			build := func(args ...string) string {
				if name == "over stdio" {
					return inspect(t, args, target...)
				}
				return inspect(t, target, args...)
			}
			list := build("--method", "tools/list")
			for _, want := range []string{"files_read", "tool_search", "tool_describe", "tool_call"} {
				if !strings.Contains(list, `"`+want+`"`) {
					t.Errorf("the list lacks %s:\n%s", want, list)
				}
			}
			if out := build("--method", "tools/call", "--tool-name", "tool_search", "--tool-arg", `queries=["echo a message back"]`); !strings.Contains(out, "mcp__everything__echo") {
				t.Errorf("search: %s", out)
			}
			if out := build("--method", "tools/call", "--tool-name", "tool_describe", "--tool-arg", `names=["greet"]`); !strings.Contains(out, "parameters") {
				t.Errorf("describe: %s", out)
			}
			for _, c := range []struct{ calls, want string }{
				{`[{"name":"greet","arguments":{"name":"Ada"}}]`, "Ada"},
				{`[{"name":"mcp__everything__echo","arguments":{"message":"hi"}}]`, "Echo: hi"},
			} {
				if out := build("--method", "tools/call", "--tool-name", "tool_call", "--tool-arg", "calls="+c.calls); !strings.Contains(out, c.want) {
					t.Errorf("call %s: %s", c.calls, out)
				}
			}
		})
	}
}

func TestFunctionCallingInTheShapesOfOthers(t *testing.T) {
	d := start(t, fmt.Sprintf("tools {\n  tool_search = false\n}\nplugin \"hello\" {\n  path = %q\n}\n", plugin("hello")))
	ready(t, d, "greet")
	cases := map[string]struct{ list, body, want string }{
		"OpenAI": {
			`"function":`,
			`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"greet","arguments":"{\"name\":\"Ada\"}"}}]}`,
			`"tool_call_id":"c1"`,
		},
		"Anthropic": {
			`"input_schema":`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"greet","input":{"name":"Ada"}}]}`,
			`"tool_use_id":"t1"`,
		},
		"Gemini": {
			`"functionDeclarations":`,
			`{"role":"model","parts":[{"functionCall":{"name":"greet","args":{"name":"Ada"}}}]}`,
			`"functionResponse":`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			format := strings.ToLower(name)
			if list := get(t, d.url+"/v1/tools?format="+format); !strings.Contains(list, c.list) || !strings.Contains(list, `"greet"`) {
				t.Errorf("tools: %s", list)
			}
			answer := post(t, d.url+"/v1/calls", c.body)
			if !strings.Contains(answer, c.want) || !strings.Contains(answer, "Ada") {
				t.Errorf("calls: %s", answer)
			}
			if !json.Valid([]byte(answer)) {
				t.Error("no JSON")
			}
		})
	}
}
