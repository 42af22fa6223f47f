package rules

import (
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/hermesd/hermesd/runtime/tool"
)

// maxDepth bounds the nesting of arguments that conditions look into; what lies deeper is null to them.
const maxDepth = 64

// narrow decides what a rule says of tool and agent. It reports false if the rule cannot match them.
func (c *compiled) narrow(call *Call) (narrowed, bool) {
	n := narrowed{rule: c}
	if len(c.fixed) == 0 {
		return n, true
	}
	ctx := &hcl.EvalContext{Functions: c.functions, Variables: map[string]cty.Value{
		"tool":  toolValue(call.Definition),
		"agent": cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(call.Agent)}),
	}}
	// One false part settles it, even if another one fails.
	for i := range c.fixed {
		ok, problem := c.fixed[i].holds(ctx)
		if problem == "" && !ok {
			return n, false
		}
		if problem != "" && n.problem == "" {
			n.problem = problem
		}
	}
	return n, true
}

// evaluation is one call while rules are held against it; what they need of it is made once.
type evaluation struct {
	call *Call
	// others are the same call with its URIs in normal forms, if it comes with others. A server may take one form for the
	// other, so deny and ask match if any does, and allow only if all do.
	others []*evaluation
	base   map[string]cty.Value // tool, agent and session
	args   map[string]cty.Value // arguments converted so far
	all    cty.Value            // all of them, when a rule needs that
}

func evaluate(call *Call) *evaluation {
	e := &evaluation{call: call}
	for _, whole := range []bool{false, true} {
		if n := call.normal(whole); n != nil {
			e.others = append(e.others, &evaluation{call: n})
		}
	}
	return e
}

// matches reports whether the rule's condition holds, and what went wrong if it could not be worked out: deny and ask
// then count as matched, allow does not.
func (n *narrowed) matches(e *evaluation) (matched bool, problem string) {
	matched, problem = n.holds(e)
	for _, other := range e.others {
		if matched != (n.rule.source.Action == Allow) {
			break
		}
		matched, problem = n.holds(other)
	}
	return matched, problem
}

// holds is matches for one form of the call.
func (n *narrowed) holds(e *evaluation) (matched bool, problem string) {
	problem = n.problem
	if len(n.rule.rest) > 0 {
		ctx := &hcl.EvalContext{Functions: n.rule.functions, Variables: e.variables(n.rule.needs)}
		for i := range n.rule.rest {
			ok, p := n.rule.rest[i].holds(ctx)
			if p == "" && !ok {
				return false, ""
			}
			if p != "" && problem == "" {
				problem = p
			}
		}
	}
	if problem != "" {
		return n.rule.source.Action != Allow, problem
	}
	return true, ""
}

func (e *evaluation) variables(needs argumentNeeds) map[string]cty.Value {
	if e.base == nil {
		e.base = map[string]cty.Value{
			"tool":  toolValue(e.call.Definition),
			"agent": cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(e.call.Agent)}),
			"session": cty.ObjectVal(map[string]cty.Value{
				"id": cty.StringVal(e.call.Session), "attended": cty.BoolVal(e.call.Attended),
			}),
		}
	}
	e.base["args"] = e.arguments(needs)
	return e.base
}

func (e *evaluation) arguments(needs argumentNeeds) cty.Value {
	if needs.all {
		if e.all == cty.NilVal {
			e.all = value(e.call.Arguments, 0)
		}
		return e.all
	}
	object := make(map[string]cty.Value, len(needs.names))
	for _, name := range needs.names {
		raw, ok := e.call.Arguments[name]
		if !ok {
			continue
		}
		v, ok := e.args[name]
		if !ok {
			v = value(raw, 0)
			if e.args == nil {
				e.args = map[string]cty.Value{}
			}
			e.args[name] = v
		}
		object[name] = v
	}
	return cty.ObjectVal(object)
}

// value converts decoded JSON. cty's own JSON package would encode and decode once more.
func value(v any, depth int) cty.Value {
	if depth > maxDepth {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	switch v := v.(type) {
	case string:
		return cty.StringVal(strings.ToValidUTF8(v, "\uFFFD"))
	case bool:
		return cty.BoolVal(v)
	case json.Number:
		if n, err := cty.ParseNumberVal(v.String()); err == nil {
			return n
		}
		return cty.NullVal(cty.Number)
	case float64:
		return cty.NumberFloatVal(v)
	case []any:
		list := make([]cty.Value, len(v))
		for i := range v {
			list[i] = value(v[i], depth+1)
		}
		return cty.TupleVal(list)
	case map[string]any:
		object := make(map[string]cty.Value, len(v))
		for k := range v {
			object[k] = value(v[k], depth+1)
		}
		return cty.ObjectVal(object)
	default:
		return cty.NullVal(cty.DynamicPseudoType)
	}
}

func toolValue(d *tool.Definition) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"name": cty.StringVal(d.Name), "toolset": cty.StringVal(d.Toolset),
		"source": cty.StringVal(string(d.Source)), "source_name": cty.StringVal(d.SourceName), "coldness": cty.StringVal(string(d.Coldness)),
		"read_only": cty.BoolVal(d.Annotations.IsReadOnly()), "destructive": cty.BoolVal(d.Annotations.IsDestructive()),
		"idempotent": cty.BoolVal(d.Annotations.IsIdempotent()), "open_world": cty.BoolVal(d.Annotations.IsOpenWorld()),
	})
}
