package integration

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/testbin"
	"github.com/hermesd/hermesd/internal/testnode"
)

// suites are the public conformance suites: the script of each release. Nothing in them may fail.
var suites = map[string]string{
	"0.1.16, up to 2025-11-25":      "@modelcontextprotocol/conformance/dist/index.js",
	"0.2.0-alpha.12, to 2026-07-28": "conformance-next/dist/index.js",
}

// Everything that the protocol has between a client and a server passes through the daemon: tools, resources, templates,
// prompts, completions, subscriptions, questions of every kind and by both generations' means, tasks.
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
	for name, script := range suites {
		t.Run(name, func(t *testing.T) {
			args := []string{filepath.Join(testnode.Modules(t), script), "server", "--url", d.url + "/mcp", "--suite", "all"}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, testnode.Node(t), args...)
			cmd.Env, cmd.Dir, cmd.WaitDelay = testnode.Env(t), t.TempDir(), time.Second
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("conformance: %v\n%s", err, out)
			}
			if _, total, ok := strings.Cut(string(out), "\nTotal: "); ok {
				t.Logf("checks: %s", strings.TrimSpace(total))
			}
		})
	}
}
