// Package rules decides about calls by the operator's rules: conditions in HCL's expression language, each with an action.
//
// [Compile] checks every condition when the configuration loads; [Set.Decide] is a pure function of a call. A condition
// is split at its conjunctions: what speaks of tool and agent alone is decided once for each of their pairs, so that most
// rules cost a call nothing, and arguments are converted only as far as the remaining conditions name them.
package rules

import (
	"fmt"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Action is what a rule wants.
type Action string

// The three actions, weakest first.
const (
	Allow Action = "allow"
	Ask   Action = "ask"
	Deny  Action = "deny"
)

// Rule is one line of policy.
type Rule struct {
	Name   string
	When   hcl.Expression // native syntax; its source range names file and line
	Action Action
	Grants []string // what a human may choose when asked: once, session, always
	Reason string
	// Floor marks a rule that hermesd ships. It cannot be overridden by a grant or a mode.
	Floor bool
}

// Call is what conditions speak of.
type Call struct {
	Definition *tool.Definition
	Arguments  map[string]any // decoded JSON, numbers as json.Number
	Agent      string
	Session    string
	Attended   bool
}

// Decision is what the rules say about a call.
type Decision struct {
	Action Action
	Rule   string // the rule's name; "" if none matched
	Where  string // its file and line, as "policy.hcl:12"
	Reason string
	Grants []string
	Floor  bool
	// Failures are conditions that could not be worked out for this call, with the rules' names, for the log. A deny or an
	// ask whose condition failed counts as matched, an allow does not.
	Failures []Failure
}

// Failure is a condition that failed while it ran.
type Failure struct {
	Rule, Where, Problem string
}

// Set is a compiled list of rules. It may be used from any goroutine.
type Set struct {
	rules    []*compiled
	fallback Action
	// narrowed holds, for each pair of tool definition and agent, the rules that may still match. A definition is never
	// changed once it is published, so its address stands for it.
	narrowed sync.Map // pair -> []narrowed
	pairs    pairCount
}

type pair struct {
	definition *tool.Definition
	agent      string
}

// Compile checks and prepares rules. fallback is the action for calls that no rule matches; "" is allow. The diagnostics
// hold everything that is wrong with any condition: unknown names and functions, and conditions that are no boolean.
func Compile(list []Rule, fallback Action) (*Set, hcl.Diagnostics) {
	if fallback == "" {
		fallback = Allow
	}
	s := &Set{fallback: fallback}
	functions := functionTable()
	var diags hcl.Diagnostics
	for i := range list {
		c, d := compileRule(&list[i], functions)
		diags = append(diags, d...)
		if c != nil {
			s.rules = append(s.rules, c)
		}
	}
	return s, diags
}

// Len is the number of rules.
func (s *Set) Len() int { return len(s.rules) }

// Decide says what happens to a call: the first rule that denies it decides, then the first that asks, then the first
// that allows, then the default action.
func (s *Set) Decide(call *Call) Decision {
	var failures []Failure
	var asks, allows *compiled
	e := evaluate(call)
	for _, n := range s.candidates(call) {
		matched, problem := n.matches(e)
		if problem != "" {
			failures = append(failures, Failure{n.rule.source.Name, n.rule.where, problem})
		}
		if !matched {
			continue
		}
		switch n.rule.source.Action {
		case Deny:
			return n.rule.decision(failures)
		case Ask:
			if asks == nil {
				asks = n.rule
			}
		case Allow:
			if allows == nil {
				allows = n.rule
			}
		}
	}
	switch {
	case asks != nil:
		return asks.decision(failures)
	case allows != nil:
		return allows.decision(failures)
	default:
		return Decision{Action: s.fallback, Failures: failures}
	}
}

// Trace is what one rule made of a call, for `hermesd policy explain`.
type Trace struct {
	Rule    string `json:"rule"`
	Where   string `json:"where"`
	Action  Action `json:"action"`
	Matched bool   `json:"matched"`
	Problem string `json:"problem,omitempty"`
}

// Explain says for every rule whether it matched.
func (s *Set) Explain(call *Call) []Trace {
	list := make([]Trace, len(s.rules))
	e := evaluate(call)
	for i, r := range s.rules {
		t := Trace{Rule: r.source.Name, Where: r.where, Action: r.source.Action}
		if n, ok := r.narrow(call); ok {
			t.Matched, t.Problem = n.matches(e)
		}
		list[i] = t
	}
	return list
}

// candidates are the rules that tool and agent leave possible, in their order.
func (s *Set) candidates(call *Call) []narrowed {
	key := pair{call.Definition, call.Agent}
	if found, ok := s.narrowed.Load(key); ok {
		return found.([]narrowed)
	}
	list := []narrowed{}
	for _, r := range s.rules {
		if n, ok := r.narrow(call); ok {
			list = append(list, n)
		}
	}
	// Definitions of past generations would stay for ever: when there are many, start again.
	if s.pairs.add() {
		s.narrowed.Clear()
	}
	s.narrowed.Store(key, list)
	return list
}

func (c *compiled) decision(failures []Failure) Decision {
	return Decision{
		Action: c.source.Action, Rule: c.source.Name, Where: c.where, Reason: c.source.Reason,
		Grants: c.source.Grants, Floor: c.source.Floor, Failures: failures,
	}
}

// String names the rule that decided, as records and messages give it.
func (d Decision) String() string {
	if d.Rule == "" {
		return "default_action"
	}
	return fmt.Sprintf("%s (%s)", d.Rule, d.Where)
}
