package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// A shown configuration is a list of members: keys with a value, which is a text, expression, bool, number, []any, object or
// block.
type (
	member struct {
		key   string
		value any
	}
	block struct {
		label   string // "" for none
		members []member
	}
	object     []member
	text       string // masked when it is printed
	expression string // HCL source
)

// Show writes the whole configuration, defaults included, as HCL that loads to the same again. A secret is shown as the
// secret(…) that it came from; texts that contain one are masked.
func (c *Config) Show(w io.Writer) error {
	file := hclwrite.NewEmptyFile()
	c.writeHCL(file.Body(), members(reflect.ValueOf(c).Elem()))
	if _, err := file.WriteTo(w); err != nil {
		return fmt.Errorf("show configuration: %w", err)
	}
	return nil
}

// members lists what a block's struct holds, by its tags. Keys without default that were not written are left out.
func members(v reflect.Value) []member {
	var list []member
	for _, f := range fieldsOf(v.Type()) {
		value := v.Field(f.index)
		if f.label != "" || value.Kind() == reflect.Pointer && value.IsNil() {
			continue
		}
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		} else if f.def == "" && f.block() == nil && value.IsZero() {
			continue
		}
		switch {
		case f.labelled():
			for i := range value.Len() {
				item := value.Index(i)
				list = append(list, member{f.name, block{label: label(item), members: members(item)}})
			}
		case f.free():
			list = append(list, member{f.name, block{members: freeMembers(value.Bytes())}})
		case f.block() != nil:
			if inner := members(value); len(inner) > 0 {
				list = append(list, member{f.name, block{members: inner}})
			}
		case f.typ == expressionType:
			list = append(list, member{f.name, expression(v.FieldByName("Text").String())})
		default:
			list = append(list, member{f.name, shown(value)})
		}
	}
	return list
}

func label(item reflect.Value) string {
	for _, f := range fieldsOf(item.Type()) {
		if f.label != "" {
			return item.Field(f.index).String()
		}
	}
	return ""
}

func shown(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Duration:
		return text(formatDuration(x))
	case Size:
		return text(x.String())
	case Prefix:
		return text(x.Text)
	case bool, int, float64:
		return x
	case string:
		return text(x)
	case []string:
		list := make([]any, len(x))
		for i := range x {
			list[i] = text(x[i])
		}
		return list
	}
	var result object
	for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
		result = append(result, member{key.String(), shown(v.MapIndex(key))})
	}
	return result
}

// freeMembers reads a config block back from its JSON, which this package made.
func freeMembers(raw []byte) []member {
	var content map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&content); err != nil {
		panic(fmt.Errorf("config: a config block is no JSON object: %w", err))
	}
	return freeValue(content).(object)
}

func freeValue(v any) any {
	switch x := v.(type) {
	case string:
		return text(x)
	case []any:
		for i := range x {
			x[i] = freeValue(x[i])
		}
		return x
	case map[string]any:
		result := object{}
		for _, key := range slices.Sorted(maps.Keys(x)) {
			result = append(result, member{key, freeValue(x[key])})
		}
		return result
	}
	return v
}

// writeHCL writes a block's keys and below them its blocks.
func (c *Config) writeHCL(body *hclwrite.Body, list []member) {
	for _, m := range list {
		if _, isBlock := m.value.(block); !isBlock {
			body.SetAttributeRaw(m.key, c.tokens(m.value))
		}
	}
	for _, m := range list {
		b, isBlock := m.value.(block)
		if !isBlock {
			continue
		}
		if len(body.Attributes())+len(body.Blocks()) > 0 {
			body.AppendNewline()
		}
		var labels []string
		if b.label != "" {
			labels = []string{b.label}
		}
		c.writeHCL(body.AppendNewBlock(m.key, labels).Body(), b.members)
	}
}

func (c *Config) tokens(v any) hclwrite.Tokens {
	switch x := v.(type) {
	case text:
		if ref := c.ref(string(x)); ref != "" {
			return hclwrite.TokensForFunctionCall("secret", hclwrite.TokensForValue(cty.StringVal(ref)))
		}
		return hclwrite.TokensForValue(cty.StringVal(c.Mask(string(x))))
	case expression:
		return hclwrite.Tokens{{Type: hclsyntax.TokenIdent, Bytes: []byte(x)}}
	case bool:
		return hclwrite.TokensForValue(cty.BoolVal(x))
	case int:
		return hclwrite.TokensForValue(cty.NumberIntVal(int64(x)))
	case float64:
		return hclwrite.TokensForValue(cty.NumberFloatVal(x))
	case json.Number:
		return hclwrite.Tokens{{Type: hclsyntax.TokenNumberLit, Bytes: []byte(x)}}
	case []any:
		items := make([]hclwrite.Tokens, len(x))
		for i := range x {
			items[i] = c.tokens(x[i])
		}
		return hclwrite.TokensForTuple(items)
	case object:
		items := make([]hclwrite.ObjectAttrTokens, len(x))
		for i, m := range x {
			name := hclwrite.TokensForValue(cty.StringVal(m.key))
			if hclsyntax.ValidIdentifier(m.key) {
				name = hclwrite.TokensForIdentifier(m.key)
			}
			items[i] = hclwrite.ObjectAttrTokens{Name: name, Value: c.tokens(m.value)}
		}
		return hclwrite.TokensForObject(items)
	}
	return hclwrite.TokensForValue(cty.NullVal(cty.DynamicPseudoType))
}

// ref is the argument of the secret(…) that a whole text came from, or "".
func (c *Config) ref(value string) string {
	for _, secret := range c.Secrets {
		if secret.Value == value {
			return secret.Ref
		}
	}
	return ""
}
