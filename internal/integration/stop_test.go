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
	misbehave := testbin.Build(t, "internal/testbin/misbehave")
	const timeout = 2 * time.Second
	for name, tt := range map[string]struct{ mode, call string }{
		"a plugin that is deaf to signals": {"deaf", ""},
		"one that hangs when it is to end": {"hang-Drain", ""},
		"one whose call never ends":        {"deaf", "ignore-cancel"},
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t, fmt.Sprintf("shutdown_timeout = %q\ntools {\n  tool_search = false\n}\nplugin \"bad\" {\n  command = [%q, %q]\n  start = \"eager\"\n  stop_grace = \"30s\"\n}\n",
				timeout, misbehave, tt.mode))
			ready(t, d, "echo")
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
