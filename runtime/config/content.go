package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
)

// content reads a body against the keys of a struct. Names that the struct does not know are reported with the nearest
// one that it does.
func (d *decoder) content(fields []field, body hcl.Body, s *scope) *hcl.BodyContent {
	var schema hcl.BodySchema
	for i := range fields {
		f := &fields[i]
		switch {
		case f.label != "":
		case f.labelled():
			schema.Blocks = append(schema.Blocks, hcl.BlockHeaderSchema{Type: f.name, LabelNames: []string{"name"}})
		case f.block() != nil, f.free():
			schema.Blocks = append(schema.Blocks, hcl.BlockHeaderSchema{Type: f.name})
		default:
			schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: f.name})
		}
	}
	content, diags := body.Content(&schema)
	for _, diag := range diags {
		switch diag.Summary {
		case "Unsupported argument", "Unsupported block type", "Extraneous JSON object property":
			d.unknownName(fields, diag, s)
		default:
			d.diags = append(d.diags, diag)
		}
	}
	return content
}

func (d *decoder) unknownName(fields []field, diag *hcl.Diagnostic, s *scope) {
	file := d.files[diag.Subject.Filename]
	name := strings.Trim(string(diag.Subject.SliceBytes(file.Bytes)), `"`)
	kind := "key"
	if diag.Summary == "Unsupported block type" {
		kind = "block"
	}
	where := "here"
	if s.what != "" {
		where = "in " + s.what
	}
	var known, alike []string
	for i := range fields {
		f := &fields[i]
		if f.label != "" {
			continue
		}
		known = append(known, f.name)
		if kind == "key" || f.block() != nil || f.free() {
			alike = append(alike, f.name)
		}
		if f.name != name {
			continue
		}
		detail := fmt.Sprintf("%s is a key %s: write %s = …, %s.", name, where, name, f.wants())
		if f.block() != nil || f.free() {
			detail = fmt.Sprintf("%s is a block %s: write %s { … }.", name, where, f.header())
		}
		d.fault(*diag.Subject, fmt.Sprintf("Not a %s: %q", kind, name), detail)
		return
	}
	advice := suggestion(name, alike)
	if nearest(name, known) != "" {
		advice = suggestion(name, known)
	}
	d.fault(*diag.Subject, fmt.Sprintf("Unknown %s %q", kind, name), fmt.Sprintf("There is no %s %q %s. %s", kind, name, where, advice))
}

func (f *field) header() string {
	if f.labelled() {
		return f.name + ` "NAME"`
	}
	return f.name
}

// suggestion names the nearest known name, or all when none is near.
func suggestion(name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("Did you mean %q?", near)
	}
	if len(known) == 0 {
		return "None is known here."
	}
	return "Known: " + strings.Join(known, ", ") + "."
}

// nearest is the known name at the smallest edit distance, if at most a third of the name (and at least two letters) would
// change, else one that contains the name or is contained in it.
func nearest(name string, known []string) string {
	best, bestDistance := "", max(2, len(name)/3)+1
	name = strings.ToLower(name)
	for _, k := range known {
		if distance := levenshtein.Distance(name, strings.ToLower(k), nil); distance < bestDistance && distance < len(k) {
			best, bestDistance = k, distance
		}
	}
	for _, k := range known {
		if best == "" && len(name) > 2 && (strings.Contains(k, name) || len(k) > 2 && strings.Contains(name, k)) {
			best = k
		}
	}
	return best
}

// shorthand takes attributes that stand for a block, such as `tool_search = true`, out of a body. In JSON syntax, where
// both look alike, only a boolean is one.
func (d *decoder) shorthand(fields []field, body hcl.Body) (hcl.Attributes, hcl.Body) {
	var schema hcl.BodySchema
	for i := range fields {
		if fields[i].shorthand {
			schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: fields[i].name})
		}
	}
	if len(schema.Attributes) == 0 {
		return nil, body
	}
	content, rest, diags := body.PartialContent(&schema)
	if diags.HasErrors() {
		return nil, body // the full read reports them
	}
	for _, attr := range content.Attributes {
		if json.IsJSONExpression(attr.Expr) {
			if value, _ := attr.Expr.Value(nil); value.Type().IsObjectType() || value.Type().IsTupleType() {
				return nil, body
			}
		}
	}
	return content.Attributes, rest
}

// switchable is a block that a boolean can stand for.
type switchable interface{ turn(on bool) }

func (d *decoder) applyShorthand(f *field, target reflect.Value, attr *hcl.Attribute, blocks hcl.Blocks) {
	if len(blocks) > 0 {
		d.fault(attr.NameRange, fmt.Sprintf("%s is written twice", f.name),
			fmt.Sprintf("There is a block %s at %s, too. Keep one of them.", f.name, position(blocks[0].DefRange)))
		return
	}
	var on bool
	boolean := field{name: f.name, typ: reflect.TypeFor[bool]()}
	value, known, diags := d.value(attr)
	if !known {
		return
	}
	if _, word := attr.Expr.(*hclsyntax.ScopeTraversalExpr); diags.HasErrors() && !word {
		d.diags = append(d.diags, diags...)
		return
	}
	if diags.HasErrors() || d.set(&boolean, reflect.ValueOf(&on).Elem(), value) != "" {
		d.fault(attr.Expr.Range(), "Invalid value for "+f.name, fmt.Sprintf("%s must be true or false, or a block: %s { … }.", f.name, f.name))
		return
	}
	target.Addr().Interface().(switchable).turn(on)
}
