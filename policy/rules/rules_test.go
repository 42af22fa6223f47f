package rules_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/hermesd/hermesd/policy/rules"
	"github.com/hermesd/hermesd/runtime/tool"
)

func condition(t testing.TB, text string) hcl.Expression {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(text), "policy.hcl", hcl.Pos{Line: 7, Column: 1})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return expr
}

func set(t testing.TB, fallback rules.Action, list ...rules.Rule) *rules.Set {
	t.Helper()
	s, diags := rules.Compile(list, fallback)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return s
}

func ptr[T any](v T) *T { return &v }

var terminal = &tool.Definition{
	Name: "terminal", Toolset: "terminal", Source: tool.SourceBuiltin, SourceName: "terminal", Coldness: tool.Core,
	Annotations: tool.Annotations{Destructive: ptr(true)},
}

func call(args string) *rules.Call {
	var decoded map[string]any
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	if err := d.Decode(&decoded); err != nil {
		panic(err)
	}
	return &rules.Call{Definition: terminal, Arguments: decoded, Agent: "desk", Session: "s1", Attended: true}
}

func TestConditions(t *testing.T) {
	cases := map[string]struct {
		when, args string
		want       bool
	}{
		"a tool's annotation":                              {`tool.destructive`, `{}`, true},
		"a negation":                                       {`!tool.read_only`, `{}`, true},
		"the example of the design":                        {`tool.destructive && !startswith(tool.name, "sandbox_")`, `{}`, true},
		"a regular expression over an argument":            {`can(regex("push\\s+.*--force", args.command))`, `{"command":"git push origin --force"}`, true},
		"a regular expression that does not match":         {`can(regex("push\\s+.*--force", args.command))`, `{"command":"git pull"}`, false},
		"a regular expression with a group":                {`try(regex("(\\w+) x", args.command)[0], "") == "rm"`, `{"command":"rm x"}`, true},
		"an argument that is missing, guarded by can":      {`can(args.force) && args.force`, `{}`, false},
		"try gives a default":                              {`try(args.depth, 1) == 1`, `{}`, true},
		"a number above 2^53 keeps its digits":             {`args.id == 9007199254740993`, `{"id":9007199254740993}`, true},
		"its neighbour is another number":                  {`args.id == 9007199254740993`, `{"id":9007199254740992}`, false},
		"an argument inside another":                       {`args.options.path == "/etc"`, `{"options":{"path":"/etc"}}`, true},
		"an element of a list":                             {`contains(args.paths, "/etc")`, `{"paths":["/tmp","/etc"]}`, true},
		"a glob's star crosses slashes":                    {`glob(args.path, "/etc/*")`, `{"path":"/etc/ssh/sshd_config"}`, true},
		"the end of a text":                                {`endswith(args.path, ".hcl")`, `{"path":"a.hcl"}`, true},
		"an address in a network":                          {`cidrcontains("10.0.0.0/8", args.host)`, `{"host":"10.1.2.3"}`, true},
		"an address outside":                               {`cidrcontains("10.0.0.0/8", args.host)`, `{"host":"192.0.2.1"}`, false},
		"a wider network is not contained":                 {`cidrcontains("10.0.0.0/8", args.host)`, `{"host":"0.0.0.0/0"}`, false},
		"the length of a text":                             {`length(args.command) > 3`, `{"command":"äöüß"}`, true},
		"agent and session":                                {`agent.name == "desk" && session.attended && session.id == "s1"`, `{}`, true},
		"another agent":                                    {`agent.name == "other" || session.id == "s2"`, `{}`, false},
		"all arguments at once":                            {`length(keys(args)) == 2`, `{"a":1,"b":null}`, true},
		"a loop over arguments":                            {`length([for k, v in args : k if v == "x"]) > 0`, `{"a":"x"}`, true},
		"a false part decides although another part fails": {`args.missing == 1 && tool.name == "other"`, `{}`, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := set(t, rules.Allow, rules.Rule{Name: "r", When: condition(t, c.when), Action: rules.Deny})
			d := s.Decide(call(c.args))
			if got := d.Action == rules.Deny; got != c.want {
				t.Errorf("%s with %s matched: %t, want %t (%v)", c.when, c.args, got, c.want, d.Failures)
			}
			if traces := s.Explain(call(c.args)); traces[0].Matched != c.want {
				t.Errorf("explain says %+v", traces[0])
			}
		})
	}
}

func TestAConditionThatFailsMatchesForDenyAndAskAndNotForAllow(t *testing.T) {
	for action, want := range map[rules.Action]rules.Action{rules.Deny: rules.Deny, rules.Ask: rules.Ask, rules.Allow: rules.Deny} {
		s := set(t, rules.Deny, rules.Rule{Name: "r", When: condition(t, `args.missing == 1`), Action: action})
		d := s.Decide(call(`{}`))
		if d.Action != want {
			t.Errorf("%s: %s, want %s", action, d.Action, want)
		}
		if len(d.Failures) != 1 || !strings.Contains(d.Failures[0].Problem, "missing") {
			t.Errorf("%s: the log is told %+v", action, d.Failures)
		}
	}
}

func TestTheFirstDenyWinsThenTheFirstAskThenAllow(t *testing.T) {
	rule := func(name, when string, action rules.Action) rules.Rule {
		return rules.Rule{Name: name, When: condition(t, when), Action: action, Reason: "because " + name, Grants: []string{"once"}}
	}
	list := []rules.Rule{
		rule("allowed", `true`, rules.Allow), rule("ask 1", `tool.destructive`, rules.Ask), rule("ask 2", `true`, rules.Ask),
		rule("deny 1", `args.x == 1`, rules.Deny), rule("deny 2", `args.x == 1`, rules.Deny),
	}
	s := set(t, rules.Deny, list...)
	if d := s.Decide(call(`{"x":1}`)); d.Rule != "deny 1" || d.Reason != "because deny 1" || d.Where != "policy.hcl:7" {
		t.Errorf("decided by %+v", d)
	}
	if d := s.Decide(call(`{"x":2}`)); d.Rule != "ask 1" || d.Action != rules.Ask || len(d.Grants) != 1 {
		t.Errorf("decided by %+v", d)
	}
	s = set(t, rules.Deny, list[0])
	if d := s.Decide(call(`{"x":2}`)); d.Rule != "allowed" {
		t.Errorf("decided by %+v", d)
	}
	if d := set(t, "").Decide(call(`{}`)); d.Action != rules.Allow || d.String() != "default_action" {
		t.Errorf("without rules: %+v", d)
	}
}

func TestConditionsAreCheckedWhenTheyLoad(t *testing.T) {
	cases := map[string]struct{ when, want string }{
		"an unknown name":                      {`tol.destructive`, `Did you mean "tool"?`},
		"an unknown attribute":                 {`tool.destructiv`, `Did you mean "destructive"?`},
		"an unknown name behind a false guard": {`false && agnt.x == 1`, `Unknown name "agnt"`},
		"an unknown attribute by index":        {`tool["nme"] == "x"`, `Unknown name "tool.nme"`},
		"an unknown function":                  {`startwith(tool.name, "x")`, `Did you mean "startswith"?`},
		"an unknown function inside can":       {`can(regexx("x", args.a))`, `Unknown function "regexx"`},
		"no boolean":                           {`tool.name`, `gives a string`},
		"a wrong operand":                      {`tool.read_only + 1 == 2`, `number required`},
		"a file function":                      {`file("/etc/passwd") == ""`, `Unknown function "file"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, diags := rules.Compile([]rules.Rule{{Name: "r", When: condition(t, c.when), Action: rules.Deny}}, "")
			if !diags.HasErrors() || !strings.Contains(diags.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.when, diags, c.want)
			}
			if diags.HasErrors() && (diags[0].Subject == nil || diags[0].Subject.Filename != "policy.hcl" || diags[0].Subject.Start.Line != 7) {
				t.Errorf("the place is not named: %v", diags[0].Subject)
			}
		})
	}
}

func FuzzCondition(f *testing.F) {
	for _, seed := range []string{`tool.destructive`, `can(regex("x", args.a))`, `[for k, v in args: k][0] == "a"`, `args["a"].b[*].c == 1`, `"${tool.name}" == "x"`} {
		f.Add(seed, `{"a":1}`)
	}
	f.Fuzz(func(t *testing.T, when, args string) {
		expr, diags := hclsyntax.ParseExpression([]byte(when), "policy.hcl", hcl.InitialPos)
		if diags.HasErrors() || len(when) > 1000 {
			return
		}
		var decoded map[string]any
		if json.Unmarshal([]byte(args), &decoded) != nil {
			return
		}
		s, diags := rules.Compile([]rules.Rule{{Name: "r", When: expr, Action: rules.Deny}}, "")
		if diags.HasErrors() {
			return
		}
		s.Decide(&rules.Call{Definition: terminal, Arguments: decoded})
	})
}

// The bar: 50 rules in under 50 microseconds.
func BenchmarkDecide50Rules(b *testing.B) {
	var list []rules.Rule
	for i := range 50 {
		when := fmt.Sprintf(`tool.name == "other_%d" && can(regex("x{%d}", args.command))`, i, i+1)
		if i%5 == 0 {
			when = fmt.Sprintf(`tool.destructive && can(regex("push\\s+.*--force%d", args.command))`, i)
		}
		list = append(list, rules.Rule{Name: fmt.Sprint(i), When: condition(b, when), Action: rules.Deny})
	}
	s := set(b, "", list...)
	c := call(`{"command":"git push origin main","a":1,"b":[1,2,3],"c":{"d":"e"}}`)
	b.ReportAllocs()
	for b.Loop() {
		s.Decide(c)
	}
}
