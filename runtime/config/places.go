package config

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// places are where the keys of a block of any content are written, by JSON Pointer (RFC 6901); "" is the block itself.
type places map[string]hcl.Range

// pointer leads from a value to one inside it.
func pointer(at string, tokens ...string) string {
	for _, t := range tokens {
		at += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(t)
	}
	return at
}

// add notes an attribute, and what an object or a list written as its value holds.
func (p places) add(at string, attr *hcl.Attribute) {
	p[at] = attr.Range
	if expr, ok := attr.Expr.(hclsyntax.Expression); ok {
		p.addValue(at, expr)
	}
}

func (p places) addValue(at string, expr hclsyntax.Expression) {
	switch e := expr.(type) {
	case *hclsyntax.ObjectConsExpr:
		for _, item := range e.Items {
			key, diags := item.KeyExpr.Value(nil)
			if diags.HasErrors() || !key.IsWhollyKnown() || key.IsNull() || key.Type().FriendlyName() != "string" {
				continue
			}
			inside := pointer(at, key.AsString())
			p[inside] = hcl.RangeBetween(item.KeyExpr.Range(), item.ValueExpr.Range())
			p.addValue(inside, item.ValueExpr)
		}
	case *hclsyntax.TupleConsExpr:
		for i, item := range e.Exprs {
			inside := fmt.Sprintf("%s/%d", at, i)
			p[inside] = item.Range()
			p.addValue(inside, item)
		}
	}
}

// nearest returns the range of what a pointer names, or of the nearest thing around it that is written.
func (p places) nearest(pointer string) (hcl.Range, bool) {
	for {
		if at, ok := p[pointer]; ok {
			return at, true
		}
		cut := strings.LastIndexByte(pointer, '/')
		if cut < 0 {
			return hcl.Range{}, false
		}
		pointer = pointer[:cut]
	}
}

// PluginConfigAt returns where a key of a plugin's config block is written, given by its JSON Pointer ("/root"; "" is the
// block): the nearest enclosing one that is written, else the plugin's own block. It is zero if there is no such plugin.
func (c *Config) PluginConfigAt(name, pointer string) Position {
	if at, ok := c.configPlaces[name].nearest(pointer); ok {
		return position(at)
	}
	return Position{}
}

// PluginFault is what a plugin says about its config block.
type PluginFault struct {
	Plugin  string // the block's label
	Pointer string // JSON Pointer into the config block
	Summary string
	Detail  string
	Warning bool
}

// Diagnose gives what plugins say about their configuration its place in the files. A plugin that is not configured is
// left out.
func (c *Config) Diagnose(faults []PluginFault) Diagnostics {
	var raw hcl.Diagnostics
	for _, f := range faults {
		at, ok := c.configPlaces[f.Plugin].nearest(f.Pointer)
		if !ok {
			continue
		}
		d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: fmt.Sprintf("Plugin %q: %s", f.Plugin, f.Summary), Detail: f.Detail}
		if f.Warning {
			d.Severity = hcl.DiagWarning
		}
		d.Subject = &at
		raw = append(raw, d)
	}
	return newDiagnostics(raw, c.files, c.Files, c.Mask)
}
