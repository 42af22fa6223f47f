package pluginsdk

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// SchemaFor returns the JSON Schema (draft 2020-12) that T's type and tags describe, as [NewTool] makes it.
//
// A struct becomes an object without additional properties. A field's name comes from its json tag; it is required unless
// that says omitempty or omitzero or the field has a default. Further tags:
//
//	jsonschema:"text"                        description
//	enum:"a,b,c"                             allowed values; on a slice, of its elements
//	default:"a"                              filled in when the caller leaves the field out
//	minimum, maximum                         of numbers
//	minLength, maxLength, pattern, format    of strings
//	minItems, maxItems                       of slices
//
// The values of enum and default are JSON, or bare words for strings. A pointer is its element. time.Time is a string of
// format date-time; types that implement encoding.TextMarshaler are strings; any and json.RawMessage are unrestricted.
// Types that contain themselves, channels, functions and maps with keys other than strings are errors.
func SchemaFor[T any]() (json.RawMessage, error) {
	s, err := reflectSchema(reflect.TypeFor[T](), nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

var (
	timeType    = reflect.TypeFor[time.Time]()
	rawType     = reflect.TypeFor[json.RawMessage]()
	numberType  = reflect.TypeFor[json.Number]()
	textType    = reflect.TypeFor[encoding.TextMarshaler]()
	marshalType = reflect.TypeFor[json.Marshaler]()
)

// reflectSchema makes the schema of t. within are the structs that it is part of.
func reflectSchema(t reflect.Type, within []reflect.Type) (*jsonschema.Schema, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == timeType:
		return &jsonschema.Schema{Type: "string", Format: "date-time"}, nil
	case t == rawType:
		return &jsonschema.Schema{}, nil
	case t == numberType:
		return &jsonschema.Schema{Type: "number"}, nil
	case implements(t, marshalType):
		return &jsonschema.Schema{}, nil // its own form, which its type does not tell
	case implements(t, textType):
		return &jsonschema.Schema{Type: "string"}, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}, nil
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}, nil
	case reflect.Float32, reflect.Float64:
		return &jsonschema.Schema{Type: "number"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return integerSchema(t), nil
	case reflect.Interface:
		return &jsonschema.Schema{}, nil
	case reflect.Slice, reflect.Array:
		return listSchema(t, within)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("%v: the keys of a JSON object are strings", t)
		}
		values, err := reflectSchema(t.Elem(), within)
		if err != nil {
			return nil, err
		}
		return &jsonschema.Schema{Type: "object", AdditionalProperties: values}, nil
	case reflect.Struct:
		return structSchema(t, within)
	default:
		return nil, fmt.Errorf("%v has no JSON form", t)
	}
}

func implements(t, iface reflect.Type) bool {
	return t.Implements(iface) || t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(iface)
}

// integerSchema bounds what is narrower than 64 bits, and keeps unsigned numbers from going below 0.
func integerSchema(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "integer"}
	bits := t.Bits()
	switch unsigned := t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64; {
	case unsigned && bits < 64:
		s.Minimum, s.Maximum = new(0.0), new(math.Ldexp(1, bits)-1)
	case unsigned:
		s.Minimum = new(0.0)
	case bits < 64:
		s.Minimum, s.Maximum = new(-math.Ldexp(1, bits-1)), new(math.Ldexp(1, bits-1)-1)
	}
	return s
}

func listSchema(t reflect.Type, within []reflect.Type) (*jsonschema.Schema, error) {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}, nil
	}
	items, err := reflectSchema(t.Elem(), within)
	if err != nil {
		return nil, err
	}
	s := &jsonschema.Schema{Type: "array", Items: items}
	if t.Kind() == reflect.Array {
		s.MinItems, s.MaxItems = new(t.Len()), new(t.Len())
	}
	return s, nil
}

func structSchema(t reflect.Type, within []reflect.Type) (*jsonschema.Schema, error) {
	for _, outer := range within {
		if outer == t {
			return nil, fmt.Errorf("%v contains itself; give the schema as JSON in ToolOptions instead", t)
		}
	}
	within = append(within[:len(within):len(within)], t)
	s := &jsonschema.Schema{
		Type:                 "object",
		Properties:           map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}, // false
	}
	for _, f := range reflect.VisibleFields(t) {
		name, optional, skip := jsonField(f)
		if skip || !promoted(t, f) {
			continue
		}
		if s.Properties[name] != nil {
			return nil, fmt.Errorf("%v has two fields named %q in JSON", t, name)
		}
		p, err := reflectSchema(f.Type, within)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		if err := applyTags(p, f); err != nil {
			return nil, fmt.Errorf("field %s of %v: %w", f.Name, t, err)
		}
		s.Properties[name] = p
		s.PropertyOrder = append(s.PropertyOrder, name)
		if !optional && p.Default == nil {
			s.Required = append(s.Required, name)
		}
	}
	return s, nil
}

// jsonField reads the json tag as encoding/json does. Embedded structs without a name of their own are skipped: their
// fields are visible by themselves.
func jsonField(f reflect.StructField) (name string, optional, skip bool) {
	tag, tagged := f.Tag.Lookup("json")
	name, rest, _ := strings.Cut(tag, ",")
	switch {
	case tagged && tag == "-", !f.IsExported() && !f.Anonymous:
		return "", false, true
	case f.Anonymous && name == "":
		elem := f.Type
		if elem.Kind() == reflect.Pointer {
			elem = elem.Elem()
		}
		if elem.Kind() == reflect.Struct || !f.IsExported() {
			return "", false, true
		}
	}
	if name == "" {
		name = f.Name
	}
	for _, option := range strings.Split(rest, ",") {
		optional = optional || option == "omitempty" || option == "omitzero"
	}
	return name, optional, false
}

// promoted reports whether f appears in t's own JSON object: an embedded struct with a name in JSON keeps its fields.
func promoted(t reflect.Type, f reflect.StructField) bool {
	for depth := 1; depth < len(f.Index); depth++ {
		if name, _, _ := strings.Cut(t.FieldByIndex(f.Index[:depth]).Tag.Get("json"), ","); name != "" {
			return false
		}
	}
	return true
}

// objectSchema makes the schema of a type that stands for a JSON object: a struct, a map, or anything that is free.
func objectSchema(t reflect.Type) (*jsonschema.Schema, error) {
	s, err := reflectSchema(t, nil)
	if err != nil {
		return nil, err
	}
	if s.Type == "" {
		s.Type = "object"
	}
	if s.Type != "object" {
		return nil, errors.New("arguments are a JSON object, so that the type must be a struct or a map")
	}
	return s, nil
}
