package rules

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/hermesd/hermesd/policy"
)

// compiled is a rule whose condition has been checked and split.
type compiled struct {
	source    *Rule
	where     string
	functions map[string]function.Function
	fixed     []conjunct    // conjuncts about tool and agent alone
	rest      []conjunct    // the others
	needs     argumentNeeds // which arguments the rest names
}

// narrowed is a rule for one tool and agent.
type narrowed struct {
	rule *compiled
	// problem is why a conjunct about tool or agent could not be worked out; the rule then matches without a further look.
	problem string
}

// maxPairs bounds the remembered pairs of tool and agent.
const maxPairs = 100_000

type pairCount struct{ n atomic.Int64 }

// add counts one more and reports whether it is time to forget them all.
func (c *pairCount) add() bool {
	if c.n.Add(1) < maxPairs {
		return false
	}
	c.n.Store(0)
	return true
}

// The names that a condition may begin with, and the attributes behind them; args has any.
var (
	toolType = cty.Object(map[string]cty.Type{
		"name": cty.String, "toolset": cty.String, "source": cty.String, "source_name": cty.String, "coldness": cty.String,
		"read_only": cty.Bool, "destructive": cty.Bool, "idempotent": cty.Bool, "open_world": cty.Bool,
	})
	agentType   = cty.Object(map[string]cty.Type{"name": cty.String})
	sessionType = cty.Object(map[string]cty.Type{"id": cty.String, "attended": cty.Bool})
	roots       = map[string]cty.Type{"tool": toolType, "args": cty.DynamicPseudoType, "agent": agentType, "session": sessionType}
)

func compileRule(r *Rule, functions map[string]function.Function) (*compiled, hcl.Diagnostics) {
	at := r.When.Range()
	c := &compiled{source: r, where: fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Start.Line), functions: functions}
	expr, ok := r.When.(hclsyntax.Expression)
	if !ok {
		return nil, hcl.Diagnostics{problemAt(at, "Unsupported condition", "Write the condition in HCL's native syntax.")}
	}
	diags := check(expr, functions)
	if diags.HasErrors() {
		return nil, diags
	}
	for _, part := range conjuncts(expr) {
		if speaksOnlyOf(part.expr, "tool", "agent") {
			c.fixed = append(c.fixed, part)
		} else {
			c.rest = append(c.rest, part)
		}
	}
	c.needs = argumentsNeeded(c.rest)
	return c, diags
}

// check finds unknown names and functions by walking the tree, since evaluating a sample would miss what is not reached,
// and then the type by evaluating with unknown values.
func check(expr hclsyntax.Expression, functions map[string]function.Function) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, traversal := range expr.Variables() {
		diags = append(diags, checkName(traversal)...)
	}
	diags = append(diags, hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		call, ok := node.(*hclsyntax.FunctionCallExpr)
		if !ok {
			return nil
		}
		if _, known := functions[call.Name]; known {
			return nil
		}
		return hcl.Diagnostics{problemAt(call.NameRange, "Unknown function "+strconv.Quote(call.Name), "Conditions have the standard functions and startswith, endswith, glob, cidrcontains, can and try."+nearest(call.Name, keys(functions)))}
	})...)
	if diags.HasErrors() {
		return diags
	}
	unknown := make(map[string]cty.Value, len(roots))
	for name, kind := range roots {
		unknown[name] = cty.UnknownVal(kind)
	}
	value, diags := expr.Value(&hcl.EvalContext{Variables: unknown, Functions: functions})
	if diags.HasErrors() {
		for _, d := range diags {
			d.Expression, d.EvalContext = nil, nil // their printed form would explain with unknown values
		}
		return diags
	}
	if t := value.Type(); t != cty.Bool && t != cty.DynamicPseudoType {
		return hcl.Diagnostics{problemAt(expr.Range(), "Condition is no boolean", fmt.Sprintf("It gives a %s; compare it with something.", t.FriendlyName()))}
	}
	return nil
}

// checkName holds a variable against the names that conditions know.
func checkName(traversal hcl.Traversal) hcl.Diagnostics {
	root := traversal.RootName()
	kind, ok := roots[root]
	if !ok {
		return hcl.Diagnostics{problemAt(traversal.SourceRange(), "Unknown name "+strconv.Quote(root), "A condition knows tool, args, agent and session."+nearest(root, keys(roots)))}
	}
	if kind == cty.DynamicPseudoType || len(traversal) < 2 {
		return nil
	}
	name, ok := attributeName(traversal[1])
	if ok && !kind.HasAttribute(name) {
		return hcl.Diagnostics{problemAt(traversal.SourceRange(), "Unknown name "+strconv.Quote(root+"."+name),
			fmt.Sprintf("%s has %s.%s", root, strings.Join(keys(kind.AttributeTypes()), ", "), nearest(name, keys(kind.AttributeTypes()))))}
	}
	return nil
}

func attributeName(step hcl.Traverser) (string, bool) {
	switch step := step.(type) {
	case hcl.TraverseAttr:
		return step.Name, true
	case hcl.TraverseIndex:
		if step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull() {
			return step.Key.AsString(), true
		}
	}
	return "", false
}

func speaksOnlyOf(expr hclsyntax.Expression, names ...string) bool {
	return !slices.ContainsFunc(expr.Variables(), func(t hcl.Traversal) bool { return !slices.Contains(names, t.RootName()) })
}

// argumentNeeds says which arguments conditions name.
type argumentNeeds struct {
	all   bool // one uses args as a whole, or by a key that is not written out
	names []string
}

func argumentsNeeded(list []conjunct) argumentNeeds {
	var needs argumentNeeds
	for _, part := range list {
		for _, traversal := range part.expr.Variables() {
			if traversal.RootName() != "args" {
				continue
			}
			name, ok := "", false
			if len(traversal) > 1 {
				name, ok = attributeName(traversal[1])
			}
			switch {
			case !ok:
				needs.all = true
			case !slices.Contains(needs.names, name):
				needs.names = append(needs.names, name)
			}
		}
	}
	return needs
}

func problemAt(at hcl.Range, summary, detail string) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: strings.TrimSpace(detail), Subject: &at}
}

func keys[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

func nearest(name string, known []string) string {
	if close := policy.Nearest(name, slices.Values(known), 1); len(close) > 0 {
		return fmt.Sprintf(" Did you mean %q?", close[0])
	}
	return ""
}
