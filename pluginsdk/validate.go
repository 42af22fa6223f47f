package pluginsdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// schema is a compiled JSON Schema of type object.
type schema struct {
	raw      json.RawMessage
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
	defaults json.RawMessage // an object of the defaults, nil if there are none
}

// compileSchema compiles a schema of type object. With strictDefaults, defaults must fit it too, which JSON Schema itself
// does not ask for.
func compileSchema(raw json.RawMessage, strictDefaults bool) (*schema, error) {
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, err
	}
	if err := checkTypes(tree, ""); err != nil {
		return nil, err
	}
	s := &schema{raw: raw, root: &jsonschema.Schema{}}
	if err := json.Unmarshal(raw, s.root); err != nil {
		return nil, err
	}
	if err := checkCycles(s.root); err != nil {
		return nil, err
	}
	if s.root.Type != "object" {
		return nil, errors.New(`its type must be "object"`)
	}
	var err error
	if s.resolved, err = s.root.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: strictDefaults}); err != nil {
		return nil, err
	}
	if d := defaultsOf(s.root); d != nil {
		if s.defaults, err = json.Marshal(d); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// schemaMaps and schemaValues are the keywords that hold schemas by name, and schemas or lists of them.
var (
	schemaMaps   = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	schemaValues = []string{"items", "prefixItems", "contains", "additionalProperties", "propertyNames", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties"}
)

// checkTypes refuses type names that JSON Schema does not know, which the compiler lets through.
func checkTypes(node any, at string) error {
	switch v := node.(type) {
	case []any:
		for i, e := range v {
			if err := checkTypes(e, fmt.Sprintf("%s/%d", at, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		names, _ := v["type"].([]any)
		if name, ok := v["type"]; ok && names == nil {
			names = []any{name}
		}
		for _, name := range names {
			switch name {
			case "object", "array", "string", "number", "integer", "boolean", "null":
			default:
				return fmt.Errorf("%s/type: %v is no type of JSON Schema", at, name)
			}
		}
		for _, key := range schemaMaps {
			m, _ := v[key].(map[string]any)
			for name, e := range m {
				if err := checkTypes(e, at+"/"+key+"/"+name); err != nil {
					return err
				}
			}
		}
		for _, key := range schemaValues {
			if err := checkTypes(v[key], at+"/"+key); err != nil {
				return err
			}
		}
	}
	return nil
}

// defaultsOf collects the defaults of s's properties, and of those objects among them that must be there.
func defaultsOf(s *jsonschema.Schema) map[string]any {
	var d map[string]any
	for name, p := range s.Properties {
		var value any
		switch {
		case p.Default != nil:
			value = p.Default
		case p.Type == "object":
			if inner := defaultsOf(p); inner != nil && required(s, name) {
				value = inner
			}
		}
		if value != nil {
			if d == nil {
				d = map[string]any{}
			}
			d[name] = value
		}
	}
	return d
}

func required(s *jsonschema.Schema, name string) bool {
	for _, r := range s.Required {
		if r == name {
			return true
		}
	}
	return false
}

// validate checks a JSON object against the schema; the error is an [*Error] with the code invalid_arguments.
func (s *schema) validate(raw json.RawMessage) error {
	var value map[string]any
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(raw, &value); {
	case errors.As(err, &wrong) && wrong.Type.Kind() == reflect.Map:
		return InvalidArgument("", "the arguments must be a JSON object, not a JSON %s", wrong.Value)
	case err != nil:
		return invalidJSON(err)
	case value == nil:
		return InvalidArgument("", "the arguments must be a JSON object, not null")
	}
	if err := s.resolved.Validate(value); err != nil {
		path, text := s.faultOf(err)
		return InvalidArgument(path, "%s", text)
	}
	return nil
}

// decode checks raw and reads it into v, over the schema's defaults. With typed, v's type made the schema, so that a key
// that v does not know is a fault.
func (s *schema) decode(raw json.RawMessage, v any, typed bool) error {
	if err := s.validate(raw); err != nil {
		return err
	}
	if s.defaults != nil {
		if err := json.Unmarshal(s.defaults, v); err != nil {
			return fmt.Errorf("the defaults of the tool's own schema do not fit its type: %w", err)
		}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if typed {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return invalidJSON(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return InvalidArgument("", "there is something after the JSON object")
	}
	return nil
}

// invalidJSON explains a decoder's error, with a pointer where it names the field.
func invalidJSON(err error) *Error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		if wrong.Type.Kind() == reflect.Float64 { // the only thing that does not fit into an any
			return InvalidArgument("", "the %s is out of range", wrong.Value)
		}
		pointer := ""
		if wrong.Field != "" {
			pointer = "/" + strings.ReplaceAll(wrong.Field, ".", "/")
		}
		return InvalidArgument(pointer, "a JSON %s does not fit here: %v is expected", wrong.Value, wrong.Type)
	}
	return InvalidArgument("", "the arguments cannot be read: %w", err)
}

// faultOf takes apart what the validator says, "validating root: validating /properties/city: type: …": the place in the
// schema, turned into a pointer to the argument as far as that can be told, and the fault in words.
func (s *schema) faultOf(err error) (pointer, text string) {
	text = err.Error()
	where := ""
	for {
		rest, ok := strings.CutPrefix(text, "validating ")
		if !ok {
			break
		}
		place, after, ok := strings.Cut(rest, ": ")
		if !ok {
			break
		}
		where, text = place, after
	}
	parts := strings.Split(strings.TrimPrefix(where, "/"), "/")
	at := s.root
	for len(parts) >= 2 && parts[0] == "properties" && at != nil {
		pointer += "/" + parts[1]
		at = at.Properties[strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[1])]
		parts = parts[2:]
	}
	if at != nil && (len(parts) == 0 || where == "root") {
		text = inWords(at, text)
	}
	if pointer != "" {
		text = pointer + " " + text
	}
	return pointer, text
}

// inWords says what the schema asks for where the validator's own text is hard to read.
func inWords(s *jsonschema.Schema, text string) string {
	keyword, rest, _ := strings.Cut(text, ": ")
	switch keyword {
	case "minimum":
		return fmt.Sprintf("must be at least %v", *s.Minimum)
	case "maximum":
		return fmt.Sprintf("must be at most %v", *s.Maximum)
	case "exclusiveMinimum":
		return fmt.Sprintf("must be greater than %v", *s.ExclusiveMinimum)
	case "exclusiveMaximum":
		return fmt.Sprintf("must be less than %v", *s.ExclusiveMaximum)
	case "multipleOf":
		return fmt.Sprintf("must be a multiple of %v", *s.MultipleOf)
	case "minLength":
		return fmt.Sprintf("must have at least %d characters", *s.MinLength)
	case "maxLength":
		return fmt.Sprintf("must have at most %d characters", *s.MaxLength)
	case "enum":
		return fmt.Sprintf("must be one of %v", s.Enum)
	case "required":
		return rest
	default:
		return text
	}
}
