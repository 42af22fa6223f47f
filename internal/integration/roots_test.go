package integration

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/testbin"
	"github.com/hermesd/hermesd/internal/testnode"
)

// inFolders is a session of a client that works in these folders, through `hermesd mcp`, which all kinds of clients start.
func (d *running) inFolders(version string, folders ...string) *sdk.ClientSession {
	d.t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "editor", Version: "1"}, nil)
	for _, dir := range folders {
		//lint:ignore SA1019 what clients have
		client.AddRoots(&sdk.Root{URI: "file://" + dir, Name: filepath.Base(dir)})
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	bridge := exec.Command(filepath.Join(bin, "hermesd"), "mcp", "-c", d.config)
	session, err := client.Connect(ctx, &sdk.CommandTransport{Command: bridge}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := session.Close(); err != nil {
			d.t.Logf("close the session: %v", err)
		}
	})
	return session
}

// A server that asks in each call hears of the folders of the client whose call it is.
func TestTheFoldersOfAClientReachTheServerOfItsCall(t *testing.T) {
	d := start(t, fmt.Sprintf("tools {\n  tool_search = false\n}\nmcp_server \"kb\" {\n  command = [%q]\n}\n", testbin.Build(t, "internal/testbin/mcpserver")))
	const tool = "mcp__kb__test_input_required_result_list_roots"
	ready(t, d, tool)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		one, two := d.inFolders(version, t.TempDir()), d.inFolders(version, t.TempDir(), t.TempDir())
		for range 2 {
			for s, want := range map[*sdk.ClientSession]string{one: "1 roots", two: "2 roots"} {
				if got, isError := call(t, s, tool, map[string]any{}); isError || got != want {
					t.Errorf("%s: %q instead of %q", version, got, want)
				}
			}
		}
	}
}

// Servers of older protocols keep the folders of their session, which many clients share: they are offered none, and go on
// with what the operator gave them.
func TestAnOlderServerKeepsTheFoldersOfItsArguments(t *testing.T) {
	given, theirs := t.TempDir(), t.TempDir()
	node, modules := testnode.Node(t), testnode.Modules(t)
	script := func(name string) string {
		return filepath.Join(modules, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	}
	block := func(name, argument, also string) string {
		return fmt.Sprintf("mcp_server %q {\n  connect_timeout = \"60s\"\n  allow_read = [%q, %q]\n  command = [%q, %q, %q]\n  %s\n}\n", name, given, modules, node, script(name), argument, also)
	}
	for _, begin := range []string{"eager", "lazy"} {
		t.Run(begin, func(t *testing.T) {
			d := start(t, "tools {\n  tool_search = false\n}\n"+block("filesystem", given, fmt.Sprintf("start = %q", begin))+block("everything", "stdio", ""))
			ready(t, d, "mcp__filesystem__list_allowed_directories", "mcp__everything__echo")
			s := d.inFolders("2025-11-25", theirs)
			got, isError := call(t, s, "mcp__filesystem__list_allowed_directories", map[string]any{})
			if isError || !strings.Contains(got, given) || strings.Contains(got, theirs) {
				t.Errorf("the server works in %q", got)
			}
			listed, err := s.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(listed.Tools, func(x *sdk.Tool) bool { return strings.HasSuffix(x.Name, "get-roots-list") }) {
				t.Error("a server was told that its session has roots")
			}
		})
	}
}
