package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestKillTheDaemonInTheMiddleOfCalls ends the daemon as the kernel would, at random moments, while eight callers are at
// work. HERMESD_SOAK makes it the long run: 10,000 calls and 50 kills.
func TestKillTheDaemonInTheMiddleOfCalls(t *testing.T) {
	rounds, calls := 3, 600
	if os.Getenv("HERMESD_SOAK") != "" {
		rounds, calls = 50, 10_000
	}
	folder := t.TempDir()
	d := start(t, fmt.Sprintf(`
audit {
  arguments = true
}
plugin "files" {
  path  = %q
  trust = "builtin"
  config {
    root = %q
  }
}
`, plugin("files"), folder))
	ready(t, d, "files_write")
	var next atomic.Int64
	kills := make([]int64, rounds)
	for i := range kills {
		kills[i] = 1 + rand.Int64N(int64(calls))
	}
	slices.Sort(kills)
	for _, at := range kills {
		write(d, &next, int64(calls), at)
		d = restart(t, d)
	}
	write(d, &next, int64(calls), -1)
	examine(t, d, folder, rounds)
}

// write makes calls, each of which writes a file with its number, until limit. When the call killAt begins, the daemon is
// killed; -1 lets it live.
func write(d *running, next *atomic.Int64, limit, killAt int64) {
	var callers sync.WaitGroup
	var kill sync.Once
	for range 8 {
		callers.Go(func() {
			for {
				n := next.Add(1)
				if n > limit {
					return
				}
				if killAt >= 0 && n >= killAt {
					kill.Do(func() { go d.kill() })
				}
				body := fmt.Sprintf(`{"name":"files_write","arguments":{"path":"n%d","content":"x"}}`, n)
				response, err := http.Post(d.url+"/v1/calls", "application/json", strings.NewReader(body))
				if err != nil {
					if killAt < 0 {
						d.t.Error(err)
					} else {
						<-d.ended // the call is one of those in question
					}
					return
				}
				response.Body.Close()
			}
		})
	}
	callers.Wait()
	if killAt >= 0 {
		kill.Do(func() { d.kill() })
		<-d.ended
	}
}

// restart starts a daemon on what the killed one left.
func restart(t *testing.T, old *running) *running {
	t.Helper()
	d := launchConfig(t, old.dir, old.config)
	d.awaitReady()
	ready(t, d, "files_write")
	return d
}

func examine(t *testing.T, d *running, folder string, kills int) {
	t.Helper()
	out, errs, code := d.hermesd("audit", "verify")
	if code != 0 {
		t.Fatalf("audit verify: %s%s", out, errs)
	}
	out, errs, code = d.hermesd("audit", "export")
	if code != 0 {
		t.Fatalf("audit export: %s", errs)
	}
	started, ended := map[string]string{}, map[string]string{}
	wrote := map[string]bool{} // files whose call has a record of its start
	for dec := json.NewDecoder(bytes.NewReader([]byte(out))); dec.More(); {
		var r struct {
			Kind, Tool, Outcome, Args string
			CallID                    string `json:"call_id"`
		}
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.Tool != "files_write" {
			continue
		}
		switch _, again := ended[r.CallID]; {
		case r.Kind == "started":
			var args struct{ Path string }
			if err := json.Unmarshal([]byte(r.Args), &args); err != nil {
				t.Fatalf("%s: %v", r.Args, err)
			}
			started[r.CallID], wrote[args.Path] = args.Path, true
		case again:
			t.Errorf("call %s ended twice", r.CallID)
		default:
			ended[r.CallID] = r.Outcome
		}
	}
	unknown := 0
	for id := range started {
		switch ended[id] {
		case "ok":
		case "outcome_unknown":
			unknown++
		default:
			t.Errorf("call %s (%s) ended as %q", id, started[id], ended[id])
		}
	}
	entries, err := os.ReadDir(filepath.Clean(folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !wrote[e.Name()] && !strings.HasPrefix(e.Name(), ".") {
			t.Errorf("the call that wrote %s ran without a record of its start", e.Name())
		}
	}
	if len(started) == 0 || len(entries) == 0 {
		t.Error("no call ran")
	}
	t.Logf("%d calls ran, %d of them with an unknown outcome after %d kills", len(started), unknown, kills)
}
