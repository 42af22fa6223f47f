package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// freeform turns a block of any content into a JSON object: its keys as they are, a block without label as an object,
// blocks with labels as objects by label. Nil after a fault. places gets the range of every key, by its JSON Pointer.
func (d *decoder) freeform(body hcl.Body, what string, places places) []byte {
	before := len(d.diags)
	value := d.object(body, what, "", places)
	if len(d.diags) > before {
		return nil
	}
	encoded, err := ctyjson.Marshal(value, value.Type())
	if err != nil {
		d.fault(body.MissingItemRange(), "Invalid config of "+what, err.Error())
		return nil
	}
	return encoded
}

func (d *decoder) object(body hcl.Body, what, at string, places places) cty.Value {
	members := map[string]cty.Value{}
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		attrs, diags := body.JustAttributes()
		d.diags = append(d.diags, diags...)
		for name, attr := range attrs {
			if !hclsyntax.ValidIdentifier(name) {
				d.fault(attr.NameRange, "Invalid key", fmt.Sprintf("%q is no name: letters, digits, \"_\" and \"-\", beginning with a letter.", name))
				continue
			}
			members[name] = d.plain(attr)
			places.add(pointer(at, name), attr)
		}
		return cty.ObjectVal(members)
	}
	for name, attr := range native.Attributes {
		members[name] = d.plain(attr.AsHCLAttribute())
		places.add(pointer(at, name), attr.AsHCLAttribute())
	}
	byPath := map[string]cty.Value{}
	for _, block := range native.Blocks {
		path := append([]string{block.Type}, block.Labels...)
		key := strings.Join(path, "\x00")
		if _, again := byPath[key]; again {
			d.fault(block.DefRange(), fmt.Sprintf("Second %s block", block.Type), "In a config block each block stands once. Write several as a list of objects.")
			continue
		}
		inside := pointer(at, path...)
		places[inside] = block.DefRange()
		byPath[key] = d.object(block.Body, what, inside, places)
		d.place(members, path, byPath[key], block)
	}
	return cty.ObjectVal(members)
}

// place puts a block's object under its type and labels.
func (d *decoder) place(members map[string]cty.Value, path []string, value cty.Value, block *hclsyntax.Block) {
	name := path[0]
	if len(path) == 1 {
		if _, taken := members[name]; taken {
			d.fault(block.DefRange(), "Name written twice", fmt.Sprintf("%q is already there as a key or as a block of another form.", name))
			return
		}
		members[name] = value
		return
	}
	inner := map[string]cty.Value{}
	if before, ok := members[name]; ok {
		if !before.Type().IsObjectType() {
			d.fault(block.DefRange(), "Name written twice", fmt.Sprintf("%q is already there as a key.", name))
			return
		}
		for key, member := range before.AsValueMap() {
			inner[key] = member
		}
	}
	d.place(inner, path[1:], value, block)
	members[name] = cty.ObjectVal(inner)
}

// plain evaluates one key. Secrets are remembered and become plain texts; a secret that is no text is a fault.
func (d *decoder) plain(attr *hcl.Attribute) cty.Value {
	value, known, diags := d.value(attr)
	if diags.HasErrors() || !known {
		d.diags = append(d.diags, diags...)
		return cty.NullVal(cty.DynamicPseudoType)
	}
	if !value.IsWhollyKnown() {
		d.fault(attr.Expr.Range(), "Invalid value for "+attr.Name, "The value cannot be known when the configuration is read.")
		return cty.NullVal(cty.DynamicPseudoType)
	}
	if problem := d.remember(value); problem != "" {
		d.fault(attr.Expr.Range(), "Invalid value for "+attr.Name, problem)
	}
	plain, _ := value.UnmarkDeep()
	return plain
}

// remember adds the texts below a marked value to the secrets.
func (d *decoder) remember(value cty.Value) string {
	plain, marks := value.Unmark()
	switch {
	case plain.IsNull():
		return ""
	case plain.CanIterateElements():
		for _, item := range plain.Elements() {
			if problem := d.remember(item.WithMarks(marks)); problem != "" {
				return problem
			}
		}
	case len(marks) > 0:
		if _, ok := d.text(value); !ok {
			return "A secret can only be a text here."
		}
	}
	return ""
}

// condition keeps a rule's expression for package policy, with its source. JSON syntax holds it in a text, with or without
// the marks of a template.
func (d *decoder) condition(target reflect.Value, attr *hcl.Attribute) {
	at := attr.Expr.Range()
	if !json.IsJSONExpression(attr.Expr) {
		target.Set(reflect.ValueOf(attr.Expr))
		return
	}
	value, _ := attr.Expr.Value(nil)
	if value.IsNull() || value.Type() != cty.String {
		d.fault(at, "Invalid condition", attr.Name+" must be a text that holds an expression.")
		return
	}
	text := value.AsString()
	if inner, ok := strings.CutPrefix(text, "${"); ok && strings.HasSuffix(inner, "}") {
		text = strings.TrimSuffix(inner, "}")
	}
	if detail := tooDeep([]byte(text), attr.Name); detail != "" {
		d.fault(at, "Condition is too complex", detail)
		return
	}
	expr, diags := hclsyntax.ParseExpression([]byte(text), at.Filename, at.Start)
	if diags.HasErrors() {
		for _, diag := range diags {
			diag.Subject, diag.Context = at.Ptr(), nil // positions inside a JSON text are not those of the file
		}
		d.diags = append(d.diags, diags...)
		return
	}
	target.Set(reflect.ValueOf(expr))
}

// source is the text of an expression, for showing it.
func (d *decoder) source(attr *hcl.Attribute) string {
	if attr == nil || d.files[attr.Expr.Range().Filename] == nil {
		return ""
	}
	if json.IsJSONExpression(attr.Expr) {
		value, _ := attr.Expr.Value(nil)
		if value.IsNull() || value.Type() != cty.String {
			return ""
		}
		text := value.AsString()
		if inner, ok := strings.CutPrefix(text, "${"); ok {
			text = strings.TrimSuffix(inner, "}")
		}
		return text
	}
	return string(slices.Clone(attr.Expr.Range().SliceBytes(d.files[attr.Expr.Range().Filename].Bytes)))
}
