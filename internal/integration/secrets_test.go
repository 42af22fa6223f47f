package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/internal/testbin"
)

// leakyValue needs escapes in JSON, HTML, URLs and Go. leakyCert is a secret of several lines.
const (
	leakyValue = "xq7Kd\"vv91\\Wz3p<&>/é%41 8Hn2"
	leakyCert  = "-----BEGIN PRIVATE KEY-----\nMHcCAQEEIHk2QWxz\nT0tmR3h0cU9ZbWhJ\nVnc9\n-----END PRIVATE KEY-----"
)

// leaked are parts of the secrets that stand nowhere else, whatever the spelling.
var leaked = []string{"xq7Kd", "vv91", "Wz3p", "8Hn2", "MHcCAQEEIHk2QWxz", "T0tmR3h0cU9ZbWhJ", "Vnc9"}

func discreet(t *testing.T, where, text string) {
	t.Helper()
	for _, part := range leaked {
		if i := strings.Index(text, part); i >= 0 {
			t.Errorf("%s shows %q: …%s…", where, part, text[max(0, i-200):min(len(text), i+100)])
			return
		}
	}
}

func TestAPluginCannotShowItsSecretsWhereTheyDoNotBelong(t *testing.T) {
	binary := testbin.Build(t, "internal/testbin/leaky")
	t.Setenv("LEAKY_VALUE", leakyValue) // for the command line, too
	for _, format := range []string{"text", "json"} {
		t.Run("logs as "+format, func(t *testing.T) {
			cert := filepath.Join(t.TempDir(), "cert.pem")
			if err := os.WriteFile(cert, []byte(leakyCert+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			block := func(name, args string) string {
				return fmt.Sprintf("plugin %q {\n  path = %q\n  args = %s\n  start = \"eager\"\n  env = { LEAKY_VALUE = secret(\"env:LEAKY_VALUE\"), LEAKY_CERT = secret(\"file:%s\") }\n}\n", name, binary, args, cert)
			}
			d := start(t, fmt.Sprintf("log {\n  level  = \"debug\"\n  format = %q\n}\naudit {\n  arguments = true\n}\n", format)+
				agentBlock("desk", attended)+block("leaky", "[]")+block("dying", `["die"]`)+
				"rule \"a human decides\" {\n  when   = tool.name == \"leak_unless_asked\"\n  action = \"ask\"\n  reason = \"it shows ${secret(\"env:LEAKY_VALUE\")}\"\n}\napprovals {\n  wait = \"20s\"\n}\n")
			o := &overseen{running: d}

			secret, err := json.Marshal(map[string]string{"note": leakyValue + "\n" + leakyCert})
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "the plugins have said what they know", func() bool {
				out, _, _ := d.hermesd("plugin", "list", "--json")
				logs, _, _ := d.hermesd("plugin", "logs", "leaky")
				return strings.Contains(out, "is not a plugin") && strings.Contains(logs, "said")
			})
			for name, args := range map[string][]string{
				"an error":                    {"tool", "call", "leak", string(secret)},
				"an error, explained":         {"tool", "call", "leak", string(secret), "--explain"},
				"a tool that is not there":    {"tool", "call", "leak_locked", string(secret), "--json"},
				"the description of a tool":   {"tool", "describe", "leak_locked"},
				"a search":                    {"tool", "search", "leak", "--json"},
				"the providers":               {"plugin", "list"},
				"the providers as JSON":       {"plugin", "list", "--json"},
				"a provider":                  {"plugin", "inspect", "leaky", "--json"},
				"one that does not start":     {"plugin", "inspect", "dying", "--json"},
				"a provider's log":            {"plugin", "logs", "leaky"},
				"a provider's log as JSON":    {"plugin", "logs", "leaky", "--json"},
				"the log of one that is gone": {"plugin", "logs", "dying"},
				"the doctor":                  {"doctor"},
				"the configuration":           {"config", "show"},
			} {
				out, errs, _ := d.hermesd(args...)
				if !strings.Contains(out+errs, "leak") && !strings.Contains(out+errs, "***") {
					t.Errorf("%s says nothing: %s%s", name, out, errs)
				}
				discreet(t, name, out+errs)
			}

			session := d.connect(nil)
			text, isError := call(t, session, "tool_call", json.RawMessage(fmt.Sprintf(`{"name":"leak","arguments":%s}`, secret)))
			if !isError || !strings.Contains(text, "***") {
				t.Errorf("over MCP: %s", text)
			}
			discreet(t, "MCP", text)

			o.listen()
			answer := make(chan string, 1)
			go func() {
				for { // until the watch has begun
					out, errs, _ := d.hermesd("tool", "call", "leak_unless_asked", string(secret), "--agent", "desk")
					if !strings.Contains(out+errs, "nobody") {
						answer <- out + errs
						return
					}
				}
			}()
			p := o.question("***")
			raw, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			out, errs, _ := d.hermesd("approvals", "list")
			discreet(t, "an approval", string(raw)+out+errs)
			o.must("approvals", "approve", p.ID)
			discreet(t, "a call that was approved", <-answer)

			discreet(t, "the audit", o.must("audit", "export", "--jsonl")+o.must("audit", "query"))
			d.stop()
			discreet(t, "the daemon's log", d.out.String())
			if !strings.Contains(d.out.String(), "***") || !strings.Contains(d.out.String(), "said") {
				t.Error("the plugin said nothing")
			}
		})
	}
}
