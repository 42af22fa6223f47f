package rules

import (
	"regexp"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// conjunct is one part of a condition that is split at its &&. The commonest part of all, can(regex("literal", text)), is
// recognised: evaluated as it stands it would make a diagnostic for every text that does not match, which costs more
// than all other rules together.
type conjunct struct {
	expr    hclsyntax.Expression
	pattern *regexp.Regexp       // of a recognised part
	text    hclsyntax.Expression // what it is held against
}

// conjuncts splits an expression at its && and drops the parentheses around the parts.
func conjuncts(expr hclsyntax.Expression) []conjunct {
	switch e := expr.(type) {
	case *hclsyntax.ParenthesesExpr:
		return conjuncts(e.Expression)
	case *hclsyntax.BinaryOpExpr:
		if e.Op == hclsyntax.OpLogicalAnd {
			return append(conjuncts(e.LHS), conjuncts(e.RHS)...)
		}
	}
	c := conjunct{expr: expr}
	c.pattern, c.text = regexTest(expr)
	return []conjunct{c}
}

func regexTest(expr hclsyntax.Expression) (*regexp.Regexp, hclsyntax.Expression) {
	can, ok := expr.(*hclsyntax.FunctionCallExpr)
	if !ok || can.Name != "can" || len(can.Args) != 1 {
		return nil, nil
	}
	regex, ok := can.Args[0].(*hclsyntax.FunctionCallExpr)
	if !ok || regex.Name != "regex" || len(regex.Args) != 2 || regex.ExpandFinal || len(regex.Args[0].Variables()) > 0 {
		return nil, nil
	}
	literal, diags := regex.Args[0].Value(nil)
	if diags.HasErrors() || literal.IsNull() || literal.Type() != cty.String {
		return nil, nil
	}
	pattern, err := regexp.Compile(literal.AsString())
	if err != nil {
		return nil, nil
	}
	return pattern, regex.Args[1]
}

// holds evaluates the part. problem is why it could not be worked out.
func (c *conjunct) holds(ctx *hcl.EvalContext) (ok bool, problem string) {
	if c.pattern != nil {
		text, diags := c.text.Value(ctx)
		if diags.HasErrors() {
			return false, "" // can() of anything that fails is false
		}
		text, err := convert.Convert(text, cty.String)
		return err == nil && text.IsKnown() && !text.IsNull() && c.pattern.MatchString(text.AsString()), ""
	}
	value, diags := c.expr.Value(ctx)
	if diags.HasErrors() {
		return false, diags[0].Summary + ": " + diags[0].Detail
	}
	if value.IsNull() || !value.IsKnown() || value.Type() != cty.Bool {
		return false, "the condition gave no boolean"
	}
	return value.True(), ""
}
