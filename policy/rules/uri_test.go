package rules_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/policy/rules"
	"github.com/hermesd/hermesd/runtime/tool"
)

var reading = &tool.Definition{Name: "mcp__kb__resources/read", OwnName: "resources/read", Source: tool.SourceMCP, SourceName: "kb"}

func reads(uri string) *rules.Call {
	return &rules.Call{Definition: reading, Arguments: map[string]any{"uri": uri}, Agent: "desk"}
}

func TestEveryFormOfAURIMeetsTheRules(t *testing.T) {
	cases := map[string]struct {
		private, public string // the two prefixes
		uri             string
		denied, allowed bool
	}{
		"as it is listed":                       {"file:///private/", "file:///public/", "file:///private/b", true, false},
		"what is public":                        {"file:///private/", "file:///public/", "file:///public/b%20c", false, true},
		"what is public, otherwise":             {"file:///private/", "file:///public/", "FILE:///public/b", false, false},
		"a scheme in capitals":                  {"file:///private/", "file:///public/", "FILE:///private/b", true, false},
		"dot segments":                          {"file:///private/", "file:///public/", "file:///public/../private/b", true, false},
		"dot segments at the top":               {"file:///private/", "file:///public/", "file:///../private/./b", true, false},
		"escaped dot segments":                  {"file:///private/", "file:///public/", "file:///public/%2e%2E/private/b", true, false},
		"an escaped slash":                      {"file:///private/", "file:///public/", "file:///public/..%2fprivate/b", true, false},
		"a backslash":                           {"file:///private/", "file:///public/", `file:///public/..\private/b`, true, false},
		"an escaped letter":                     {"file:///private/", "file:///public/", "file:///%70rivate/b", true, false},
		"this machine as the host":              {"file:///private/", "file:///public/", "file://LocalHost/private/b", true, false},
		"one slash":                             {"file:///private/", "file:///public/", "file:/private/b", true, false},
		"too many slashes":                      {"file:///private/", "file:///public/", "file:////private//b", true, false},
		"the server's name before it":           {"file:///private/", "file:///public/", "mcp://KB/mcp://kb/FILE:///private/b", true, false},
		"blanks and line ends":                  {"file:///private/", "file:///public/", " fi\tle:///pri\nvate/b", true, false},
		"dots behind a question mark":           {"file:///private/", "file:///public/", "file:///public/?/../../private/b", true, false},
		"a question mark before what is public": {"file:///private/", "file:///public/", "FILE:///private/b?/../../public/x", true, false},
		"a host in capitals":                    {"https://x/private/", "https://x/public/", "HTTPS://X:443/private/b?q", true, false},
		"a port that is not the default":        {"https://x/private/", "https://x/public/", "https://x:80/private/b", false, false},
		"a rule in the server's spelling, which is not normal":            {"kb://Docs/private/", "kb://Docs/public/", "kb://Docs/private/b", true, false},
		"an escape that is not decoded, since it is no slash in a server": {"kb://docs/a/b", "kb://docs/a", "kb://docs/a%2Fb", false, true},
		"no scheme":          {"private", "public", "%70rivate", true, false},
		"no hierarchy":       {"urn:private:", "urn:public:", "URN:priv%61te:1", true, false},
		"nothing but blanks": {"file:", "urn:", " ", false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			begins := func(prefix string) string {
				quoted, err := json.Marshal(prefix)
				if err != nil {
					t.Fatal(err)
				}
				return `startswith(args.uri, ` + string(quoted) + `)`
			}
			blocks := set(t, "", rules.Rule{Name: "r", When: condition(t, begins(c.private)), Action: rules.Deny})
			opens := set(t, rules.Deny, rules.Rule{Name: "r", When: condition(t, begins(c.public)), Action: rules.Allow})
			shuts := set(t, "", rules.Rule{Name: "r", When: condition(t, "!"+begins(c.public)), Action: rules.Deny})
			call := reads(c.uri)
			if got := blocks.Decide(call).Action == rules.Deny; got != c.denied {
				t.Errorf("a rule that denies %s: denied is %t", c.private, got)
			}
			if got := blocks.Explain(call)[0].Matched; got != c.denied {
				t.Errorf("the explanation of a rule that denies %s: matched is %t", c.private, got)
			}
			if got := opens.Decide(call).Action == rules.Allow; got != c.allowed {
				t.Errorf("a rule that allows %s: allowed is %t", c.public, got)
			}
			if got := shuts.Decide(call).Action == rules.Allow; got != c.allowed {
				t.Errorf("a rule that denies all but %s: allowed is %t", c.public, got)
			}
			if call.Arguments["uri"] != c.uri {
				t.Errorf("the call itself was changed: %v", call.Arguments)
			}
		})
	}
}

func TestTheReferenceOfACompletionIsAURIAndAToolsArgumentIsNot(t *testing.T) {
	completing := *reading
	completing.Name = "mcp__kb__completion/complete"
	ref := map[string]any{"ref": map[string]any{"type": "ref/resource", "uri": "FILE:///private/{x}"}}
	s := set(t, "", rules.Rule{Name: "r", When: condition(t, `args.ref.uri == "file:///private/{x}"`), Action: rules.Deny})
	if d := s.Decide(&rules.Call{Definition: &completing, Arguments: ref}); d.Action != rules.Deny {
		t.Errorf("a completion: %+v", d)
	}
	s = set(t, "", rules.Rule{Name: "r", When: condition(t, `args.uri == "file:///x"`), Action: rules.Deny})
	if d := s.Decide(call(`{"uri":"FILE:///x"}`)); d.Action != rules.Allow {
		t.Errorf("a tool: %+v", d)
	}
}

// However a private file is spelt, a rule about it holds.
func FuzzURI(f *testing.F) {
	for _, s := range []string{"", "..", "%2e%2E/x", `a\..\`, "//", "%zz%", "?#", "a b", "ä"} {
		f.Add(s)
	}
	s := set(f, "", rules.Rule{Name: "r", When: condition(f, `startswith(args.uri, "file:///private/")`), Action: rules.Deny})
	f.Fuzz(func(t *testing.T, text string) {
		s.Decide(reads(text))
		if d := s.Decide(reads("FILE:///private/x?" + text)); d.Action != rules.Deny {
			t.Errorf("%q in a query: %+v", text, d)
		}
		if strings.ContainsAny(text, "?#") {
			return
		}
		if d := s.Decide(reads("file://localhost/" + text + strings.Repeat("/..", len(text)+1) + "/%70rivate/x")); d.Action != rules.Deny {
			t.Errorf("%q before it: %+v", text, d)
		}
	})
}
