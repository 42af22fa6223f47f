package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/internal/testbin"
)

// Names that meet: of two servers, of a server and a built-in, of a server and the bridge. Nothing is ever run under a name
// that could mean two things, and everything else goes on.
func TestToolsOfOneNameAreRefusedAndNeighboursGoOn(t *testing.T) {
	server := testbin.Build(t, "internal/testbin/mcpserver")
	block := func(label, prefix, extra string) string {
		return fmt.Sprintf("mcp_server %q {\n  command = [%q]\n  parallel = true\n  %s\n  env = { NAME = %q, EXTRA_TOOLS = %q }\n  tools {\n    include = [\"own_*\", \"shared\", \"files_read\", \"tool_search\"]\n  }\n}\n", label, server, prefix, label, extra)
	}
	d := start(t, "tools {\n  tool_search = false\n}\n"+
		fmt.Sprintf("plugin \"files\" {\n  path = %q\n  trust = \"builtin\"\n  config {\n    root = %q\n  }\n}\n", plugin("files"), t.TempDir())+
		block("one", `prefix = ""`, "own_one shared files_read tool_search")+
		block("two", `prefix = ""`, "own_two shared")+
		block("three", "", "own_three shared files_read tool_search"))
	ready(t, d, "own_one", "own_two", "mcp__three__own_three", "files_list") // files_list: the built-ins have started
	s := d.connect(nil)
	for name, want := range map[string]string{
		"own_one": "own_one of one", "own_two": "own_two of two",
		"mcp__three__shared": "shared of three", "mcp__three__files_read": "files_read of three", "mcp__three__tool_search": "tool_search of three",
	} {
		if got, isError := call(t, s, name, map[string]any{}); isError || got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	got, isError := call(t, s, "shared", map[string]any{})
	if !isError || strings.Contains(got, "shared of") {
		t.Errorf("a name of two servers ran: %q", got)
	}
	if got, _ := call(t, s, "files_read", map[string]any{}); strings.Contains(got, "files_read of one") {
		t.Errorf("a server shadows a built-in without being allowed to: %q", got)
	}
	if got, _ := call(t, s, "tool_search", map[string]any{"queries": []string{"x"}}); strings.Contains(got, "tool_search of one") {
		t.Errorf("a server shadows the bridge: %q", got)
	}
	eventually(t, "the log names what was refused, and both origins", func() bool {
		out := d.out.String()
		return strings.Contains(out, "tool=shared") && strings.Contains(out, "one") && strings.Contains(out, "two")
	})
}

// Resources and prompts are offered where the block says so, under the server's name.
func TestAResourceOfAServerIsReadThroughTheDaemon(t *testing.T) {
	server := testbin.Build(t, "internal/testbin/mcpserver")
	d := start(t, fmt.Sprintf("mcp_server \"kb\" {\n  command = [%q]\n  resources = true\n  prompts = true\n}\nmcp_server \"off\" {\n  command = [%q]\n}\n", server, server))
	ready(t, d, "mcp__kb__test_simple_text", "mcp__off__test_simple_text")
	var read struct{ Contents []struct{ URI, Text string } }
	eventually(t, "its resources are known", func() bool {
		return strings.Contains(string(d.raw("resources/list", "{}")), "mcp://kb/test://static-text")
	})
	if list := string(d.raw("resources/list", "{}")); strings.Contains(list, "mcp://off/") {
		t.Errorf("resources that nobody asked for: %s", list)
	}
	if err := json.Unmarshal(d.raw("resources/read", `{"uri":"mcp://kb/test://static-text"}`), &read); err != nil || len(read.Contents) != 1 || read.Contents[0].URI != "mcp://kb/test://static-text" {
		t.Errorf("%+v %v", read, err)
	}
	if got := string(d.raw("prompts/get", `{"name":"mcp__kb__test_prompt_with_arguments","arguments":{"arg1":"a","arg2":"b"}}`)); !strings.Contains(got, "arg1='a', arg2='b'") {
		t.Error(got)
	}
}
