package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// tinyServer writes an MCP server that is a shell script and starts in no time. Its tool "which" tells one process from another. One
// that is stubborn ignores the end of its input and SIGTERM. In the file that the variable STARTS names, if any, it notes that
// it begins to start ("+") and that it is asked for its tools ("-").
func tinyServer(t *testing.T, stubborn bool) (command string) {
	t.Helper()
	first, last := "", ""
	if stubborn {
		first, last = "trap '' TERM", "exec sleep 1000"
	}
	file := filepath.Join(t.TempDir(), "server.sh")
	text := first + `
note() { if [ -n "$STARTS" ]; then echo "$1" >>"$STARTS"; fi; }
note +
me=$(cat /proc/sys/kernel/random/uuid || date +%s%N) # its process id may be the same as the last one's, in a namespace
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while IFS= read -r line; do
	id=${line#*\"id\":}
	id=${id%%[,\}]*}
	case $line in
	*'"method":"notifications/'*) ;;
	*'"method":"initialize"'*) answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"tiny","version":"1"}}' ;;
	*'"method":"tools/list"'*) note -; answer '"result":{"tools":[{"name":"which","description":"Says which process serves.","inputSchema":{"type":"object"}}]}' ;;
	*'"method":"tools/call"'*) answer '"result":{"content":[{"type":"text","text":"'$me'"}]}' ;;
	*'"method":"ping"'*) answer '"result":{}' ;;
	*) answer '"error":{"code":-32601,"message":"unknown method"}' ;;
	esac
done
` + last + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("[\"/bin/sh\", %q]", file)
}

// stateOf is a provider's state with its reason.
func (d *running) stateOf(name string) (state, reason string) {
	d.t.Helper()
	for _, p := range d.providers() {
		if p.Name == name {
			return p.State, p.Reason
		}
	}
	return "", ""
}

// A server that is slow to stop is as good as any other while it is being recycled: calls wait for the next process, search
// shows its tool as available, and no loop guard steps in.
func TestAServerThatIsSlowToStopRefusesNoCallWhileItIsRecycled(t *testing.T) {
	for name, tt := range map[string]struct {
		setting string
		reason  string
	}{
		"idle":                   {`idle_timeout = "300ms"`, "nobody has used it"},
		"at the end of its life": {`max_lifetime = "1500ms"`, "it has run for"},
		"restarted":              {"", "the operator"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t, fmt.Sprintf("tools {\n  tool_search {\n    enabled = \"on\"\n  }\n}\nmcp_server \"slow\" {\n  command    = %s\n  stop_grace = \"2s\"\n  parallel   = true\n  %s\n}\n", tinyServer(t, true), tt.setting))
			ready(t, d, "mcp__slow__which")
			s := d.connect(nil)
			before, isError := call(t, s, "mcp__slow__which", nil)
			if isError {
				t.Fatal(before)
			}
			if tt.setting == "" {
				if out, errs, code := d.hermesd("plugin", "restart", "slow"); code != 0 {
					t.Fatal(out, errs)
				}
			}
			eventually(t, "it is being stopped", func() bool {
				state, reason := d.stateOf("slow")
				if state == "draining" && !strings.Contains(reason, tt.reason) {
					t.Errorf("the reason is %q, want %q in it", reason, tt.reason)
				}
				return state == "draining"
			})
			if text, _ := call(t, s, "tool_search", map[string]any{"queries": []string{"which process serves"}}); !strings.Contains(text, "mcp__slow__which") || strings.Contains(text, "unavailable") {
				t.Errorf("search: %s", text)
			}
			var calls sync.WaitGroup
			for range 10 { // more than the loop guard lets fail
				calls.Go(func() {
					if after, isError := call(t, s, "mcp__slow__which", nil); isError || after == before {
						t.Errorf("a call: %s", after)
					}
				})
			}
			calls.Wait()
		})
	}
}

// Planned restarts of providers of every kind under steady calls: not one of them fails.
func TestNoCallFailsWhileProvidersAreRecycled(t *testing.T) {
	remote := newUpstream(t)
	remote.up(offering("work"))
	d := start(t, fmt.Sprintf(`
tools {
  tool_search = false
}
mcp_server "aged" {
  command      = %[1]s
  max_lifetime = "700ms"
}
mcp_server "restarted" {
  command = %[1]s
}
mcp_server "idle" {
  command      = %[1]s
  idle_timeout = "50ms"
}
mcp_server "remote" {
  url          = "http://%[2]s/mcp"
  max_lifetime = "700ms"
}
mcp_server "remote_idle" {
  url          = "http://%[2]s/mcp"
  idle_timeout = "50ms"
}
plugin "hello" {
  path = %[3]q
}
plugin "stateful" {
  path         = %[4]q
  grant        = ["store"]
  idle_timeout = "50ms"
}
`, tinyServer(t, false), remote.address, plugin("hello"), plugin("stateful")))
	ready(t, d, "mcp__aged__which", "mcp__restarted__which", "mcp__idle__which", "mcp__remote__work", "mcp__remote_idle__work", "greet", "counter_get")
	var all sync.WaitGroup
	until := time.Now().Add(4 * time.Second)
	seen := map[string]map[string]bool{} // by provider: what its calls said
	var mu sync.Mutex
	caller := func(provider, tool string, args map[string]any, pause time.Duration) {
		s := d.connect(nil)
		all.Go(func() {
			for n := 0; time.Now().Before(until); n++ {
				text, isError := call(t, s, tool, args)
				if isError {
					t.Errorf("call %d of %s: %s", n, tool, text)
					return
				}
				mu.Lock()
				if seen[provider] == nil {
					seen[provider] = map[string]bool{}
				}
				seen[provider][text] = true
				mu.Unlock()
				if pause > 0 {
					<-time.After(pause)
				}
			}
		})
	}
	for range 2 {
		caller("aged", "mcp__aged__which", nil, 0)
		caller("restarted", "mcp__restarted__which", nil, 0)
		caller("remote", "mcp__remote__work", nil, 0)
		caller("hello", "greet", map[string]any{"name": "you"}, 0)
	}
	for _, pause := range []time.Duration{49, 52, 60} { // about when it is being stopped
		caller("idle", "mcp__idle__which", nil, pause*time.Millisecond)
		caller("remote_idle", "mcp__remote_idle__work", nil, pause*time.Millisecond)
		caller("stateful", "counter_get", map[string]any{"name": "n"}, pause*time.Millisecond)
	}
	for _, name := range []string{"restarted", "hello"} {
		all.Go(func() {
			for range 6 {
				if _, errs, code := d.hermesd("plugin", "restart", name); code != 0 {
					t.Errorf("restarting %s: %s", name, errs)
				}
				<-time.After(300 * time.Millisecond)
			}
		})
	}
	all.Wait()
	for _, name := range []string{"aged", "restarted"} {
		if len(seen[name]) < 3 {
			t.Errorf("%s was served by %d processes only: nothing was recycled", name, len(seen[name]))
		}
	}
	for _, p := range d.providers() {
		if p.Restarts != 0 {
			t.Errorf("%s: planned restarts count as %d that were not", p.Name, p.Restarts)
		}
	}
}

// tenSeconds is a try that is at least so far away.
var tenSeconds = regexp.MustCompile(`started again in [0-9]{2}`)

// Guards fault 37768: a call says "not connected" of a server that has long been back and whom every probe reaches.
func TestACallReachesAServerThatIsBack37768(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.up(offering("work"))
	// Without the loop guard, whose words would take the place of those looked for.
	d := start(t, fmt.Sprintf("guard {\n  same_call_block = 0\n  same_tool_block = 0\n}\nmcp_server \"remote\" {\n  url = \"http://%s/mcp\"\n  backoff {\n    min = \"1s\"\n  }\n}\n", u.address))
	ready(t, d, "mcp__remote__work")
	s := d.connect(nil)
	work := func() (string, bool) { return call(t, s, "mcp__remote__work", nil) }
	for round := range 2 {
		if text, isError := work(); isError {
			t.Fatalf("round %d: %s", round, text)
		}
		u.down() // the second time soon after its start, so that it has not been well
		for n := 0; ; n++ {
			text, isError := work()
			if !isError {
				t.Fatal("a server that is down answers")
			}
			if tenSeconds.MatchString(text) {
				break
			}
			if n > 20 {
				t.Fatalf("the pauses do not grow: %s", text)
			}
		}
		u.up(offering("work"))
		if out, errs, code := d.hermesd("mcp-server", "test", "remote"); code != 0 {
			t.Fatal(out, errs)
		}
		var calls sync.WaitGroup
		for range 4 {
			s := d.connect(nil)
			calls.Go(func() {
				if text, isError := call(t, s, "mcp__remote__work", nil); isError {
					t.Errorf("round %d: it is back, and a call says: %s", round, text)
				}
			})
		}
		calls.Wait()
	}
}
