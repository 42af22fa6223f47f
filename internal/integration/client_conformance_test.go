package integration

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/testbin"
	"github.com/hermesd/hermesd/internal/testnode"
)

// maxAttempts is how often a suite may be tried: it measures times (sse-retry), and warns of a loaded machine.
const maxAttempts = 3

// hermesd's own MCP client, as the daemon uses it towards upstream servers, against the public suite's servers and
// authorization servers. Nothing is expected to fail.
func TestTheConformanceSuitesPassForTheClient(t *testing.T) {
	client := testbin.Build(t, "internal/integration/suiteclient")
	for name, suite := range map[string]string{
		"0.1.16, up to 2025-11-25":      "@modelcontextprotocol/conformance/dist/index.js",
		"0.2.0-alpha.12, to 2026-07-28": "conformance-next/dist/index.js",
	} {
		t.Run(name, func(t *testing.T) {
			script := filepath.Join(testnode.Modules(t), suite)
			var out []byte
			var err error
			for range maxAttempts {
				ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
				cmd := exec.CommandContext(ctx, testnode.Node(t), script, "client", "--command", client, "--suite", "all")
				cmd.Env, cmd.Dir, cmd.WaitDelay = testnode.Env(t), t.TempDir(), time.Second
				out, err = cmd.CombinedOutput()
				cancel()
				if err == nil {
					return
				}
			}
			t.Errorf("conformance: %v\n%s", err, out)
		})
	}
}
