package importer_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/cmd/hermesd/importer"
)

// Servers run in the folder of the project that their file belongs to, and relative paths mean what they meant.
func TestServersRunWhereTheirFilesProgramRunsThem(t *testing.T) {
	const (
		desktop = `{"mcpServers":{"a":{"command":"node","args":["s.mjs"]}}}`
		program = `{"mcpServers":{"a":{"command":"./run.sh"}}}`
	)
	type place struct {
		Program, Cwd string
		Enabled      bool
	}
	for name, tt := range map[string]struct {
		path, data string
		want       place
	}{
		"VS Code's project":            {"/p/.vscode/mcp.json", `{"servers":{"a":{"command":"./run.sh"}}}`, place{"/p/run.sh", "/p", true}},
		"VS Code's folder of its own":  {"/p/.vscode/mcp.json", `{"servers":{"a":{"command":"./run.sh","cwd":"sub"}}}`, place{"/p/sub/run.sh", "/p/sub", true}},
		"VS Code's settings of a user": {"/home/ada/.config/Code/User/settings.json", `{"mcp":{"servers":{"a":{"command":"./run.sh"}}}}`, place{"/etc/hermesd/run.sh", "", false}},
		"Cursor's project":             {"/p/.cursor/mcp.json", desktop, place{"node", "/p", true}},
		"Cursor's user":                {"/home/ada/.cursor/mcp.json", desktop, place{"node", "", false}},
		"Claude Code's project":        {"/p/.mcp.json", program, place{"/p/run.sh", "/p", true}},
		"Claude Code's user":           {"/home/ada/.claude.json", `{"projects":{"/q":` + desktop + `}}`, place{"node", "/q", true}},
		"a file beside what it names":  {"/beside/servers.json", desktop, place{"node", "/beside", true}},
		"a file far from it":           {"/elsewhere/servers.json", desktop, place{"node", "", false}},
		"a folder that is written":     {"/elsewhere/servers.json", `{"mcpServers":{"a":{"command":"node","args":["s.mjs"],"cwd":"/w"}}}`, place{"node", "/w", true}},
		"Hermes":                       {"/home/ada/.hermes/config.yaml", "mcp_servers: {a: {command: python, args: [-u, --config=./c.yaml]}}", place{"python", "", false}},
		"nothing relative":             {"/elsewhere/servers.json", `{"mcpServers":{"a":{"command":"npx","args":["-y","chart.js","--x=/y"]}}}`, place{"npx", "", true}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := importer.Read([]importer.File{{Path: tt.path, Data: []byte(tt.data)}}, &importer.Options{
				Home: "/home/ada", Exists: func(path string) bool { return path == "/beside/s.mjs" },
			})
			if err != nil {
				t.Fatal(err)
			}
			s := load(t, r.HCL(), r).MCPServers[0]
			if diff := cmp.Diff(tt.want, place{s.Command[0], s.Cwd, s.Enabled}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if changed := tt.want.Cwd != "" || !tt.want.Enabled; changed && tt.want.Cwd != "/w" && len(r.Notes) == 0 {
				t.Error("it is not listed")
			}
		})
	}
}
