package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// providerLine is one provider of `plugin list --json`.
type providerLine struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Healthy  bool   `json:"healthy"`
	Reason   string `json:"reason"` // why it cannot be had now
	Failure  string `json:"failure"`
	Restarts int    `json:"restarts"`
	PID      int    `json:"pid"`
}

func (d *running) providers() []providerLine {
	d.t.Helper()
	out, errs, code := d.hermesd("plugin", "list", "--json")
	if code != 0 {
		d.t.Fatalf("plugin list: %s", errs)
	}
	var list []providerLine
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		d.t.Fatal(err)
	}
	return list
}

// provider waits until a provider is as a test wants it.
func (d *running) provider(name, what string, is func(providerLine) bool) providerLine {
	d.t.Helper()
	var last providerLine
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		for _, p := range d.providers() {
			if last = p; p.Name == name && is(p) {
				return p
			}
		}
	}
	d.t.Fatalf("%s is never %s: %+v", name, what, last)
	return last
}

func TestAnOperatorSeesAndMendsAProvider(t *testing.T) {
	d := start(t, fmt.Sprintf("plugin \"hello\" {\n  path = %q\n  start = \"eager\"\n}\n", plugin("hello")))
	healthy := func(p providerLine) bool { return p.State == "ready" && p.Healthy && p.PID > 0 }
	first := d.provider("hello", "healthy", healthy)
	if first.Restarts != 0 || first.Failure != "" {
		t.Errorf("at first: %+v", first)
	}
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := d.provider("hello", "healthy again", func(p providerLine) bool { return healthy(p) && p.PID != first.PID })
	if second.Restarts != 1 || !strings.Contains(second.Failure, "SIGKILL") {
		t.Errorf("after a kill: %+v", second)
	}
	out, errs, code := d.hermesd("plugin", "logs", "hello", "--json")
	if code != 0 || !strings.Contains(out, `"level":"warn","from":"hermesd","text":"provider failed"`) || !strings.Contains(out, "SIGKILL") {
		t.Errorf("logs: exit %d, %s%s", code, out, errs)
	}
	if out, errs, code = d.hermesd("plugin", "restart", "hello"); code != 0 {
		t.Errorf("restart: exit %d, %s%s", code, out, errs)
	}
	d.provider("hello", "another process", func(p providerLine) bool { return healthy(p) && p.PID != second.PID && p.Restarts == 1 })
	if out, errs, code = d.hermesd("plugin", "revoke", "hello"); code != 0 || out != "0 revoked\n" {
		t.Errorf("revoke: exit %d, %s%s", code, out, errs)
	}
	for _, args := range [][]string{{"logs", "nobody"}, {"restart", "nobody"}, {"revoke", "nobody"}, {"revoke", "hello", "NO-SUCH"}} {
		if out, errs, code := d.hermesd(append([]string{"plugin"}, args...)...); code != 1 || errs == "" {
			t.Errorf("%s: exit %d, %s%s", args, code, out, errs)
		}
	}
}
