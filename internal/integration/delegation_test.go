package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/internal/testbin"
)

// A plugin calls another plugin's tool within a call and, with a delegation, after it, until an operator takes that back.
func TestAPluginCallsToolsForItsAgent(t *testing.T) {
	mis := testbin.Build(t, "internal/testbin/misbehave")
	d := start(t, fmt.Sprintf(`
plugin "hello" {
  path = %q
}
plugin "mis" {
  path   = %q
  prefix = "mis"
  grant  = ["call_tool"]
}
rule "no flags" {
  when   = tool.name == "mis__print"
  action = "deny"
  reason = "printing is not wanted"
}
`, plugin("hello"), mis))
	for _, name := range []string{"hello", "mis"} {
		d.provider(name, "ready", func(p providerLine) bool { return p.State == "ready" })
	}
	call := func(name, args string) string {
		t.Helper()
		out, errs, code := d.hermesd("tool", "call", name, args)
		if code != 0 {
			t.Fatalf("%s %s: exit %d, %s%s", name, args, code, out, errs)
		}
		return strings.TrimSpace(out)
	}
	if got := call("mis__call-named", `{"tool":"mis__echo"}`); !strings.Contains(got, `called: [{"text":"{}","type":"text"}]`) {
		t.Errorf("within a call: %s", got)
	}
	if got := call("mis__call-named", `{"tool":"mis__print"}`); !strings.Contains(got, "error denied_by_rule") || !strings.Contains(got, "printing is not wanted") {
		t.Errorf("what a rule denies: %s", got)
	}
	if got := call("mis__call-named", `{"tool":"greet"}`); !strings.Contains(got, "error invalid_arguments") {
		t.Errorf("another plugin's tool, without what it requires: %s", got)
	}

	got := call("mis__call-named", `{"tool":"mis__echo","delegate":true}`)
	token := got[strings.LastIndexByte(got, ' ')+1:]
	outside := func() string {
		return call("mis__call-outside", fmt.Sprintf(`{"token":%q,"tool":"mis__echo"}`, token))
	}
	if got := outside(); !strings.HasPrefix(got, "called:") {
		t.Errorf("with a delegation: %s", got)
	}
	out, errs, code := d.hermesd("plugin", "inspect", "mis")
	var seen struct {
		Detail struct {
			Delegations []struct {
				ID, Tool, Agent, IssuedBy string
				Calls                     int
			}
		} `json:"detail"`
	}
	if err := json.Unmarshal([]byte(out), &seen); err != nil || code != 0 {
		t.Fatalf("inspect: exit %d, %v, %s", code, err, errs)
	}
	held := seen.Detail.Delegations
	if len(held) != 1 || held[0].Tool != "mis__echo" || held[0].Agent != "local" || held[0].IssuedBy != "mis__call-named" || held[0].Calls != 1 {
		t.Fatalf("listed: %+v", held)
	}
	if out, errs, code := d.hermesd("plugin", "revoke", "mis", held[0].ID); code != 0 || out != "1 revoked\n" {
		t.Errorf("revoke: exit %d, %s%s", code, out, errs)
	}
	if got := outside(); !strings.Contains(got, "error not_granted") {
		t.Errorf("after it was revoked: %s", got)
	}
	records, errs, code := d.hermesd("audit", "export")
	if code != 0 || strings.Count(records, `"via":"plugin"`) < 4 {
		t.Errorf("the record does not tell a plugin's calls: exit %d, %s\n%s", code, errs, records)
	}
}
