package integration

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/testbin"
)

// Whatever a provider does, shutdown_timeout is all that stopping takes.
func TestAStopEndsWithinItsTime(t *testing.T) {
	misbehave, server := testbin.Build(t, "internal/testbin/misbehave"), testbin.Build(t, "internal/testbin/mcpserver")
	const timeout = 2 * time.Second
	plugin := func(mode string) string {
		return fmt.Sprintf("plugin \"bad\" {\n  command = [%q, %q]\n", misbehave, mode)
	}
	for name, tt := range map[string]struct{ block, tool, call string }{
		"a plugin that is deaf to signals": {plugin("deaf"), "echo", ""},
		"one that hangs when it is to end": {plugin("hang-Drain"), "echo", ""},
		"one whose call never ends":        {plugin("deaf"), "echo", "ignore-cancel"},
		"an MCP server that does not end": {
			fmt.Sprintf("mcp_server \"bad\" {\n  command = [\"sh\", \"-c\", \"trap '' TERM; \\\"$@\\\"; while :; do sleep 1; done\", \"sh\", %q]\n", server), "mcp__bad__test_simple_text", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t, fmt.Sprintf("shutdown_timeout = %q\ntools {\n  tool_search = false\n}\n%s  start = \"eager\"\n  stop_grace = \"30s\"\n}\n", timeout, tt.block))
			ready(t, d, tt.tool)
			if tt.call != "" {
				answered := make(chan struct{})
				go func() {
					defer close(answered)
					if r, err := http.Post(d.url+"/v1/calls", "application/json", strings.NewReader(fmt.Sprintf(`{"name":%q,"arguments":{}}`, tt.call))); err == nil {
						r.Body.Close()
					}
				}()
				defer func() { <-answered }()
				eventually(t, "the call runs", func() bool {
					out, _, _ := d.hermesd("audit", "query", "--json")
					return strings.Contains(out, tt.call)
				})
			}
			begun := time.Now()
			if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			<-d.ended
			took := time.Since(begun)
			t.Logf("%v", took.Round(time.Millisecond))
			if took > timeout+time.Second { // a loaded machine gets some more
				t.Errorf("it took %v of %v", took, timeout)
			}
		})
	}
}
