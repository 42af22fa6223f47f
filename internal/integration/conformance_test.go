package integration

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/testnode"
)

// The public suite calls tools that live in a plugin, so it also proves that every kind of content, log line, progress
// step and question crosses the plugin's boundary.
func TestThePublicConformanceSuitePasses(t *testing.T) {
	d := start(t, fmt.Sprintf(`
tools {
  tool_search = false
}
plugin "conformance" {
  path  = %q
  grant = ["ask_human", "sample"]
}
`, plugin("conformance")))
	ready(t, d, "test_simple_text", "test_elicitation")
	expected, err := filepath.Abs("testdata/conformance.yml")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, testnode.Bin(t, "conformance"), "server", "--url", d.url+"/mcp", "--suite", "all", "--expected-failures", expected)
	cmd.Env, cmd.Dir, cmd.WaitDelay = testnode.Env(t), t.TempDir(), time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("conformance: %v\n%s", err, out)
	}
}
