package config

import (
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/zclconf/go-cty/cty"
)

// set stores a value in a field. It answers what is wrong with it, or "".
func (d *decoder) set(f *field, into reflect.Value, value cty.Value) string {
	if into.Kind() == reflect.Pointer {
		inner := reflect.New(into.Type().Elem())
		problem := d.set(f, inner.Elem(), value)
		if problem == "" {
			into.Set(inner)
		}
		return problem
	}
	wrong := f.name + " must be " + f.wants() + "."
	switch {
	case into.Type() == prefixType:
		return d.setPrefix(f, into, value)
	case into.Type() == durationType, into.Type() == sizeType:
		return d.setQuantity(f, into, value)
	}
	switch into.Kind() {
	case reflect.String:
		text, ok := d.text(value)
		if !ok {
			return wrong
		}
		if len(f.oneOf) > 0 && !slices.Contains(f.oneOf, text) {
			return wrong + d.meant(value, text, f.oneOf)
		}
		if f.path {
			text = d.absolute(text)
		}
		into.SetString(text)
	case reflect.Bool:
		if value.IsMarked() || value.IsNull() || value.Type() != cty.Bool {
			return wrong
		}
		into.SetBool(value.True())
	case reflect.Int, reflect.Float64:
		return d.setNumber(f, into, value)
	case reflect.Slice:
		list, problem := d.texts(f, value)
		if problem != "" {
			return problem
		}
		into.Set(reflect.ValueOf(list))
	case reflect.Map:
		return d.setMap(f, into, value)
	default:
		panic("config: no way to decode " + into.Type().String())
	}
	return ""
}

// meant suggests the nearest allowed value, unless the written one is secret.
func (d *decoder) meant(value cty.Value, text string, allowed []string) string {
	if value.IsMarked() {
		return ""
	}
	if near := nearest(text, allowed); near != "" {
		return fmt.Sprintf(" Did you mean %q?", near)
	}
	return ""
}

// text is a value's text; texts that come from a secret are remembered.
func (d *decoder) text(value cty.Value) (string, bool) {
	plain, marks := value.Unmark()
	if plain.IsNull() || plain.Type() != cty.String {
		return "", false
	}
	if len(marks) > 0 {
		d.secrets.addDerived(plain.AsString())
	}
	return plain.AsString(), true
}

func (d *decoder) texts(f *field, value cty.Value) ([]string, string) {
	if one, ok := d.text(value); ok {
		example := one
		if value.IsMarked() {
			example = "…"
		}
		return nil, fmt.Sprintf("%s must be a list: write %s = [%q].", f.name, f.name, example)
	}
	wrong := f.name + " must be " + f.wants() + "."
	items, ok := elements(value)
	if !ok {
		return nil, wrong
	}
	list := make([]string, 0, len(items))
	for _, item := range items {
		text, ok := d.text(item)
		if !ok {
			return nil, wrong
		}
		if len(f.each) > 0 && !slices.Contains(f.each, text) {
			return nil, wrong + d.meant(item, text, f.each)
		}
		if text == "" && f.def == "" && f.name != "command" && f.name != "args" && f.name != "exec" {
			return nil, fmt.Sprintf("%s must not contain an empty text.", f.name)
		}
		if f.path {
			text = d.absolute(text)
		}
		list = append(list, text)
	}
	return list, ""
}

// elements lists a sequence's items. What marks the sequence marks each item.
func elements(value cty.Value) ([]cty.Value, bool) {
	plain, marks := value.Unmark()
	if plain.IsNull() || !(plain.Type().IsTupleType() || plain.Type().IsListType() || plain.Type().IsSetType()) {
		return nil, false
	}
	var items []cty.Value
	for _, item := range plain.Elements() {
		items = append(items, item.WithMarks(marks))
	}
	return items, true
}

func (d *decoder) setMap(f *field, into reflect.Value, value cty.Value) string {
	wrong := f.name + " must be " + f.wants() + "."
	plain, marks := value.Unmark()
	if plain.IsNull() || !(plain.Type().IsObjectType() || plain.Type().IsMapType()) {
		return wrong
	}
	result := reflect.MakeMap(into.Type())
	for _, key := range into.MapKeys() { // defaults and inherited ones stay unless the value names them
		result.SetMapIndex(key, into.MapIndex(key))
	}
	for key, item := range plain.Elements() {
		name := key.AsString()
		item = item.WithMarks(marks)
		if into.Type().Elem().Kind() == reflect.Slice {
			list, problem := d.texts(&field{name: f.name + "." + name, typ: into.Type().Elem()}, item)
			if problem != "" {
				return problem
			}
			result.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(list))
			continue
		}
		text, ok := d.text(item)
		if !ok {
			return fmt.Sprintf("%s.%s must be a text. Numbers and booleans need quotes here.", f.name, name)
		}
		result.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(text))
	}
	into.Set(result)
	return ""
}

func (d *decoder) setNumber(f *field, into reflect.Value, value cty.Value) string {
	wrong := f.name + " must be " + f.wants() + "."
	if value.IsMarked() || value.IsNull() || value.Type() != cty.Number {
		return wrong
	}
	number := value.AsBigFloat()
	if f.min != "" && (number.Cmp(bound(f.min)) < 0 || number.Cmp(bound(f.max)) > 0) {
		return fmt.Sprintf("%s It is %s.", wrong, number.Text('g', 10))
	}
	if into.Kind() == reflect.Float64 {
		float, _ := number.Float64()
		into.SetFloat(float)
		return ""
	}
	if !number.IsInt() {
		return fmt.Sprintf("%s It is %s.", wrong, number.Text('g', 10))
	}
	whole, _ := number.Int64()
	into.SetInt(whole)
	return ""
}

func bound(text string) *big.Float {
	number, _, err := big.ParseFloat(text, 10, 64, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	return number
}

func (d *decoder) setQuantity(f *field, into reflect.Value, value cty.Value) string {
	wrong := f.name + " must be " + f.wants() + "."
	parse := parseDurationNumber
	if into.Type() == sizeType {
		parse = parseSizeNumber
	}
	if value.IsMarked() || value.IsNull() || value.Type() != cty.String {
		if value.Type() == cty.Number {
			return wrong + " Write it as a text with its unit."
		}
		return wrong
	}
	amount, err := parse(value.AsString())
	if err != nil {
		return fmt.Sprintf("%s %s.", wrong, err)
	}
	lowest, errLow := parse(f.min)
	highest, errHigh := parse(f.max)
	if errLow != nil || errHigh != nil {
		panic("config: bad bounds of " + f.name)
	}
	if amount < lowest || amount > highest {
		return fmt.Sprintf("%s It is %s.", wrong, strconv.Quote(value.AsString()))
	}
	into.SetInt(amount)
	return ""
}

func parseDurationNumber(text string) (int64, error) {
	d, err := parseDuration(text)
	return int64(d / time.Nanosecond), err
}

func parseSizeNumber(text string) (int64, error) {
	size, err := parseSize(text)
	return int64(size), err
}

func (d *decoder) setPrefix(f *field, into reflect.Value, value cty.Value) string {
	if text, ok := d.text(value); ok {
		if text != "" && !toolNamePattern.MatchString(text) {
			return f.name + ` must consist of letters, digits, "_" and "-", at most 64.`
		}
		into.Set(reflect.ValueOf(Prefix{Set: true, Text: text}))
		return ""
	}
	if value.IsMarked() || value.IsNull() || value.Type() != cty.Bool {
		return f.name + " must be " + f.wants() + "."
	}
	if value.True() {
		into.Set(reflect.ValueOf(Prefix{Set: true, Text: d.owner}))
	}
	return ""
}
