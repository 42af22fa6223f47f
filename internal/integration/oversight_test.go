package integration

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestOperatorsSeeWhatBecomesOfCalls(t *testing.T) {
	o := approved(t, "")
	t.Run("a call is explained stage by stage", func(t *testing.T) {
		out, errs, code := o.hermesd("tool", "call", "terminal", `{"command":"echo hi","timeout":"5"}`, "--explain", "--agent", "desk")
		if code != 0 || !strings.Contains(out, "hi\n") {
			t.Fatalf("%d: %s%s", code, out, errs)
		}
		for _, want := range []string{"coerced arguments.timeout: string became number", "rules", "allow default_action", "audit started", "dispatch", `"timeout":5`} {
			if !strings.Contains(errs, want) {
				t.Errorf("no %q in\n%s", want, errs)
			}
		}
		out, errs, code = o.hermesd("tool", "call", "terminal", `{"command":"rule-denies"}`, "--explain", "--agent", "desk")
		if code != 4 || !strings.Contains(errs, "refused, denied_by_rule") || strings.Contains(errs, "dispatch") {
			t.Errorf("a call that is denied: %d %s%s", code, out, errs)
		}
	})
	t.Run("a call is held against the rules by the tool's name", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "call.json")
		if err := os.WriteFile(file, []byte(`{"agent":"attended","tool":"terminal","arguments":{"command":"needs-a-human"},"expect":"ask"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := o.hermesd("policy", "test", file)
		if code != 0 || !strings.Contains(out, "ask by ask first (hermesd.hcl:") {
			t.Errorf("%d: %s%s", code, out, errs)
		}
		if len(o.pending()) > 0 {
			t.Error("somebody was asked")
		}
	})
	t.Run("records are followed, queried, exported and verified", func(t *testing.T) {
		cmd := exec.Command(filepath.Join(bin, "hermesd"), "audit", "tail", "--json", "--after", "1", "--outcome", "denied", "-c", o.config)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := cmd.Process.Kill(); err == nil {
				cmd.Wait() //nolint:errcheck // it was killed
			}
		}()
		lines := bufio.NewScanner(stdout)
		if !lines.Scan() || !strings.Contains(lines.Text(), "rule-denies") && !strings.Contains(lines.Text(), `"code":"denied_by_rule"`) {
			t.Fatalf("followed: %s", lines.Text())
		}
		o.ask("desk", "echo rule-denies again")
		if !lines.Scan() || !strings.Contains(lines.Text(), `"agent":"desk"`) {
			t.Errorf("followed: %s", lines.Text())
		}
		table := o.must("audit", "query", "--tool", "terminal", "--since", "1h")
		if !strings.Contains(table, "denied (denied_by_rule)") || !strings.Contains(table, "no (hermesd.hcl:") {
			t.Errorf("queried:\n%s", table)
		}
		export := strings.Split(strings.TrimSpace(o.must("audit", "export", "--jsonl")), "\n")
		for i, line := range export {
			var e struct{ Seq int }
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Seq != i+1 {
				t.Fatalf("line %d: %v: %s", i, err, line)
			}
		}
		if out := o.must("audit", "verify"); !strings.Contains(out, "the chain is sound") || !strings.Contains(out, "head ") {
			t.Errorf("verified: %s", out)
		}
	})
	t.Run("names that select nothing are told", func(t *testing.T) {
		d := start(t, agentBlock("a", "  toolsets = [\"nosuch\"]"))
		eventually(t, "doctor tells it", func() bool {
			out, _, _ := d.hermesd("doctor")
			return strings.Contains(out, `agent "a": no provider brings the toolset "nosuch"`)
		})
	})
}
