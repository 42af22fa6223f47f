package integration

import (
	"fmt"
	"strings"
	"testing"
)

// A plugin that dies at each start is given up when the operator says so, and an MCP server never is.
func TestBackoffAndQuarantineAreTheOperators(t *testing.T) {
	t.Parallel()
	d := start(t, fmt.Sprintf(`
plugin "broken" {
  path = %q
  backoff {
    min = "10ms"
    max = "20ms"
  }
  quarantine {
    failures = 2
  }
}
mcp_server "gone" {
  command = [%q]
  backoff {
    min = "10ms"
    max = "20ms"
  }
}
`, "/bin/false", "/bin/false"))
	eventually(t, "the plugin is given up after its second failure", func() bool {
		out, _, _ := d.hermesd("plugin", "inspect", "broken")
		return strings.Contains(out, "quarantined") && strings.Contains(out, "2 times")
	})
	eventually(t, "the server is tried more often than a plugin would be by default", func() bool {
		return strings.Count(d.out.String(), "gone") > 5
	})
	if out, _, _ := d.hermesd("mcp-server", "list"); strings.Contains(out, "quarantined") {
		t.Errorf("a server is given up:\n%s", out)
	}
}
