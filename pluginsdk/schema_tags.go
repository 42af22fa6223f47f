package pluginsdk

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// applyTags adds to p what the field's tags say; [SchemaFor] lists them.
func applyTags(p *jsonschema.Schema, f reflect.StructField) error {
	if text, ok := f.Tag.Lookup("jsonschema"); ok {
		p.Description = text
	}
	target := p // enum on a slice speaks of its elements
	if p.Type == "array" && p.Items != nil {
		target = p.Items
	}
	if text, ok := f.Tag.Lookup("enum"); ok {
		for word := range strings.SplitSeq(text, ",") {
			v, err := tagValue(target, word)
			if err != nil {
				return fmt.Errorf("enum: %w", err)
			}
			var value any
			if err := json.Unmarshal(v, &value); err != nil {
				return fmt.Errorf("enum: %w", err)
			}
			target.Enum = append(target.Enum, value)
		}
	}
	if text, ok := f.Tag.Lookup("default"); ok {
		v, err := tagValue(p, text)
		if err != nil {
			return fmt.Errorf("default: %w", err)
		}
		p.Default = v
	}
	for _, tag := range []struct {
		name string
		to   **float64
	}{{"minimum", &p.Minimum}, {"maximum", &p.Maximum}} {
		if text, ok := f.Tag.Lookup(tag.name); ok {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fmt.Errorf("%s: %q is no number", tag.name, text)
			}
			*tag.to = &n
		}
	}
	for _, tag := range []struct {
		name string
		to   **int
	}{{"minLength", &p.MinLength}, {"maxLength", &p.MaxLength}, {"minItems", &p.MinItems}, {"maxItems", &p.MaxItems}} {
		if text, ok := f.Tag.Lookup(tag.name); ok {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return fmt.Errorf("%s: %q is no count", tag.name, text)
			}
			*tag.to = &n
		}
	}
	if text, ok := f.Tag.Lookup("pattern"); ok {
		p.Pattern = text
	}
	if text, ok := f.Tag.Lookup("format"); ok {
		p.Format = text
	}
	return nil
}

// tagValue reads a tag's value as JSON of the schema's type; for strings, bare words will do.
func tagValue(s *jsonschema.Schema, text string) (json.RawMessage, error) {
	if s.Type == "string" && !strings.HasPrefix(text, `"`) {
		return json.Marshal(text)
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("%q is no JSON value of type %q", text, s.Type)
	}
	return json.RawMessage(text), nil
}
