package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/hermesd/hermesd/policy/floor"
	"github.com/hermesd/hermesd/policy/rules"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Policy is what a configuration says about calls: the floor, and the operator's rules on top of it. It implements the
// rules of package pipeline.
type Policy struct {
	floor    *floor.Floor
	set      *rules.Set
	fallback rules.Action
	version  string
	log      *slog.Logger

	mu   sync.Mutex
	told map[rules.Failure]bool // failures that the log has been told of
}

// maxTold bounds the failures that are remembered as told.
const maxTold = 1000

// NewPolicy compiles a configuration's rules. The diagnostics name file and line of everything that is wrong with them;
// the policy must not be used if they have errors. A nil logger discards.
func NewPolicy(cfg *config.Config, logger *slog.Logger) (*Policy, config.Diagnostics) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	p := &Policy{floor: newFloor(cfg), fallback: rules.Action(cfg.DefaultAction), log: logger, told: map[rules.Failure]bool{}}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", cfg.DefaultAction)
	var list []rules.Rule
	var diags hcl.Diagnostics
	for i := range cfg.Rules {
		r := &cfg.Rules[i]
		when, bad := condition(r)
		diags = append(diags, bad...)
		if bad.HasErrors() {
			continue
		}
		list = append(list, rules.Rule{Name: r.Name, When: when, Action: rules.Action(r.Action), Grants: r.Grants, Reason: r.Reason})
		fmt.Fprintf(h, "%q %q %q %q %q\n", r.Name, r.Text, r.Action, r.Grants, r.Reason)
	}
	for i := range cfg.Hooks {
		k := &cfg.Hooks[i]
		fmt.Fprintf(h, "%q %q %q %q %q %q %q %t\n", k.Name, k.On, k.Match, k.Exec, k.Webhook, k.Plugin, k.OnError, k.Enabled)
	}
	p.version = hex.EncodeToString(h.Sum(nil)[:8])
	set, bad := rules.Compile(list, p.fallback)
	p.set = set
	return p, cfg.Report(append(diags, bad...))
}

// condition is a rule's condition in native syntax. In JSON it is a text that holds one.
func condition(r *config.Rule) (hcl.Expression, hcl.Diagnostics) {
	if _, native := r.When.(hclsyntax.Expression); native {
		return r.When, nil
	}
	at := r.When.Range()
	text, diags := r.When.Value(nil)
	if diags.HasErrors() || text.IsNull() || text.Type().FriendlyName() != "string" {
		return nil, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Unsupported condition", Detail: "In JSON a condition is a text that holds an expression.", Subject: &at}}
	}
	return hclsyntax.ParseExpression([]byte(text.AsString()), at.Filename, at.Start)
}

// Version changes whenever another decision might come out.
func (p *Policy) Version() string { return p.version }

// Decide implements the rules of package pipeline.
func (p *Policy) Decide(_ context.Context, e *pipeline.Entry) pipeline.Decision {
	return p.decide(&rules.Call{
		Definition: e.Definition, Arguments: e.Arguments, Agent: e.Call.Agent, Session: e.Call.Session, Attended: e.Call.Attended,
	})
}

func (p *Policy) decide(call *rules.Call) pipeline.Decision {
	below := p.floor.Decide(call.Definition, call.Agent, call.Arguments)
	if below.Action == floor.Deny {
		return p.ofFloor(&below)
	}
	d := p.set.Decide(call)
	for _, f := range d.Failures {
		p.failed(f, call.Definition.Name)
	}
	if below.Action == floor.Ask && d.Action != rules.Deny {
		return p.ofFloor(&below)
	}
	return pipeline.Decision{
		Action: pipeline.Action(d.Action), Rule: d.String(), Key: keyOf(&d), Reason: d.Reason, Grants: d.Grants, Policy: p.version,
	}
}

func (p *Policy) ofFloor(d *floor.Decision) pipeline.Decision {
	return pipeline.Decision{Action: pipeline.Action(d.Action), Rule: d.Rule, Key: d.Rule, Reason: d.Reason, Floor: true, Policy: p.version}
}

func keyOf(d *rules.Decision) string {
	if d.Rule == "" {
		return "default_action"
	}
	return d.Rule
}

// failed tells the log of a condition that could not be worked out, once for each rule and problem.
func (p *Policy) failed(f rules.Failure, name tool.Name) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told[f] {
		return
	}
	if len(p.told) >= maxTold {
		clear(p.told)
	}
	p.told[f] = true
	p.log.Warn("a rule's condition failed; deny and ask count as matched then, allow does not",
		"rule", f.Rule, "at", f.Where, "tool", name, "problem", f.Problem)
}

// Sample is a call that the policy is tried on.
type Sample struct {
	Definition *tool.Definition
	Arguments  json.RawMessage // a JSON object; nil is {}
	Agent      string
	Session    string
	Attended   bool
}

// Verdict is what the policy says about a sample.
type Verdict struct {
	Action pipeline.Action `json:"action"`
	Rule   string          `json:"rule"` // with file and line
	Reason string          `json:"reason,omitempty"`
	Grants []string        `json:"grants,omitempty"` // what the human may choose
	Floor  bool            `json:"floor,omitempty"`  // nothing overrides it
	Policy string          `json:"policy"`
	// Rules are all rules with what they made of the call, in order.
	Rules []rules.Trace `json:"rules"`
}

// Try decides about a sample without running anything.
func (p *Policy) Try(s *Sample) (*Verdict, error) {
	call := &rules.Call{Definition: s.Definition, Agent: s.Agent, Session: s.Session, Attended: s.Attended, Arguments: map[string]any{}}
	if len(s.Arguments) > 0 {
		var err error
		if call.Arguments, err = decodeObject(s.Arguments); err != nil {
			return nil, fmt.Errorf("the arguments are no JSON object: %w", err)
		}
	}
	d := p.decide(call)
	v := &Verdict{Action: d.Action, Rule: d.Rule, Reason: d.Reason, Floor: d.Floor, Policy: d.Policy}
	if d.Action == pipeline.Ask {
		v.Grants = d.Grants
	}
	for _, name := range floor.Rules() {
		v.Rules = append(v.Rules, rules.Trace{Rule: name, Where: "shipped", Action: floorAction(name), Matched: d.Floor && d.Rule == name})
	}
	v.Rules = append(v.Rules, p.set.Explain(call)...)
	return v, nil
}

func floorAction(rule string) rules.Action {
	if rule == floor.RuleInstall {
		return rules.Ask
	}
	return rules.Deny
}
