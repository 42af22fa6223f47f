package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// field is one key of a block as the tags of its struct declare it:
//
//	key        the name in HCL
//	label      the field holds the block's label: "text", or the range of its length (of lower-case letters, digits, _ and -)
//	default    for texts, durations and sizes as they are, for others as an HCL expression
//	in, each   the values that a text, or each text of a list, may have
//	min, max   bounds of numbers, durations and sizes
//	required   the key must be written
//	path       a relative path starts at the configuration file's folder
//	secret     a text that is masked even when it was written literally
//	inherit    a block whose unwritten keys keep what the struct held before
//	shorthand  a block that may be written as an attribute, true or false
type field struct {
	index              int
	typ                reflect.Type
	name               string
	def, min, max      string
	label              string
	oneOf, each        []string
	required, path     bool
	secret             bool
	inherit, shorthand bool
}

var (
	durationType   = reflect.TypeFor[time.Duration]()
	sizeType       = reflect.TypeFor[Size]()
	prefixType     = reflect.TypeFor[Prefix]()
	rawType        = reflect.TypeFor[json.RawMessage]()
	expressionType = reflect.TypeFor[hcl.Expression]()
)

// fieldsOf lists a block struct's fields in the order of their declaration.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		f := field{
			index: i, typ: t.Field(i).Type, name: tag.Get("key"), label: tag.Get("label"),
			def: tag.Get("default"), min: tag.Get("min"), max: tag.Get("max"),
			required: tag.Get("required") != "", path: tag.Get("path") != "", secret: tag.Get("secret") != "",
			inherit: tag.Get("inherit") != "", shorthand: tag.Get("shorthand") != "",
		}
		if f.name == "" && f.label == "" {
			continue
		}
		if in := tag.Get("in"); in != "" {
			f.oneOf = strings.Split(in, "|")
		}
		if each := tag.Get("each"); each != "" {
			f.each = strings.Split(each, "|")
		}
		fields = append(fields, f)
	}
	return fields
}

// block is the struct type that a field's blocks decode into, or nil for an attribute.
func (f *field) block() reflect.Type {
	t := f.typ
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == prefixType {
		return nil
	}
	return t
}

// free says that the field is a block of any content.
func (f *field) free() bool { return f.typ == rawType }

// labelled says that the field's blocks have a label.
func (f *field) labelled() bool { return f.typ.Kind() == reflect.Slice && f.block() != nil }

// defaultValue is the value of an attribute that is not written; the tags are checked by a test, so a bad one is a
// programming error.
func (f *field) defaultValue() cty.Value {
	switch {
	case f.def == "":
		return cty.NilVal
	case f.typ.Kind() == reflect.String, f.typ == durationType, f.typ == sizeType:
		return cty.StringVal(f.def)
	}
	expr, diags := hclsyntax.ParseExpression([]byte(f.def), f.name, hcl.InitialPos)
	if diags.HasErrors() {
		panic(diags)
	}
	value, diags := expr.Value(nil)
	if diags.HasErrors() {
		panic(diags)
	}
	return value
}

// wants says which values the field takes, for messages ("must be …") and the reference page.
func (f *field) wants() string {
	bounds := ""
	if f.min != "" {
		bounds = " from " + f.min + " to " + f.max
	}
	example := cmp.Or(f.def, f.max)
	if strings.HasPrefix(example, "0") {
		example = f.max
	}
	t := f.typ
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case len(f.oneOf) > 0:
		return alternatives(f.oneOf)
	case len(f.each) > 0:
		return "a list of " + alternatives(f.each)
	case t == durationType:
		return "a duration" + bounds + ", such as " + strconv.Quote(example)
	case t == sizeType:
		return "a size" + bounds + ", such as " + strconv.Quote(example)
	case t == prefixType:
		return "true, false or a text"
	case t == expressionType:
		return "a condition"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number" + bounds
	case reflect.Float64:
		return "a number" + bounds
	case reflect.Slice:
		return "a list of texts"
	case reflect.Map:
		if t.Elem().Kind() == reflect.Slice {
			return `an object of lists, such as { name = ["text"] }`
		}
		return `an object of texts, such as { NAME = "text" }`
	}
	return "a text"
}

func alternatives(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = strconv.Quote(v)
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return fmt.Sprintf("%s or %s", strings.Join(quoted[:last], ", "), quoted[last])
}
