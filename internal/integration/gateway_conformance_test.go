package integration

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/testbin"
	"github.com/hermesd/hermesd/internal/testnode"
)

// suites are the public conformance suites: the script of each release, and what it may fail on ("": nothing).
var suites = map[string]struct{ script, expected string }{
	"0.1.16, up to 2025-11-25":      {"@modelcontextprotocol/conformance/dist/index.js", ""},
	"0.2.0-alpha.12, to 2026-07-28": {"conformance-next/dist/index.js", "testdata/gateway-0.2.yml"},
}

// Everything that the protocol has between a client and a server passes through the daemon: tools, resources, templates,
// prompts, completions, subscriptions, questions of every kind and by both generations' means.
func TestTheConformanceSuitesPassThroughTheDaemon(t *testing.T) {
	upstream := testbin.Build(t, "internal/testbin/mcpserver")
	d := start(t, fmt.Sprintf(`
tools {
  tool_search = false
}
guard {
  calls_per_minute = 0
}
mcp_server "suite" {
  command   = [%q]
  prefix    = ""
  parallel  = true
  resources = true
  prompts   = true
}
`, upstream))
	ready(t, d, "test_simple_text", "test_elicitation")
	for name, suite := range suites {
		t.Run(name, func(t *testing.T) {
			args := []string{filepath.Join(testnode.Modules(t), suite.script), "server", "--url", d.url + "/mcp", "--suite", "all"}
			if suite.expected != "" {
				expected, err := filepath.Abs(suite.expected)
				if err != nil {
					t.Fatal(err)
				}
				args = append(args, "--expected-failures", expected)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, testnode.Node(t), args...)
			cmd.Env, cmd.Dir, cmd.WaitDelay = testnode.Env(t), t.TempDir(), time.Second
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("conformance: %v\n%s", err, out)
			}
		})
	}
}
