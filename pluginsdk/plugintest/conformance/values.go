package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compileObject compiles a schema that must be of type object.
func compileObject(raw []byte) (*jsonschema.Schema, error) {
	var head struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	if head.Type != "object" {
		return nil, errors.New(`its type must be "object"`)
	}
	return compile(raw)
}

func isObject(raw []byte) bool {
	return json.Valid(raw) && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{"))
}

// misfit is a JSON text that a schema refuses. Property is the one at fault, "" if it is the whole.
type misfit struct {
	raw      json.RawMessage
	property string
}

// misfits are texts that do not fit a schema of type object: another type, a missing property, a property of the wrong
// type, one that the schema does not know. base is an object that fits, if one is known.
func misfits(s *jsonschema.Schema, raw, base []byte) []misfit {
	var shape struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(raw, &shape) != nil {
		return nil
	}
	object := map[string]any{}
	if base != nil && json.Unmarshal(base, &object) != nil {
		return nil
	}
	list := []misfit{{raw: json.RawMessage(`[]`)}, {raw: json.RawMessage(`"text"`)}}
	try := func(property string, value map[string]any) bool {
		text, err := json.Marshal(value)
		if err != nil || fits(s, text) == nil {
			return false
		}
		list = append(list, misfit{text, property})
		return true
	}
	try("", map[string]any{})
	for _, name := range slices.Sorted(maps.Keys(shape.Properties)) {
		for _, wrong := range []any{map[string]any{"plugintest": true}, []any{1.5}, "plugintest \u0000", -1.5} {
			changed := maps.Clone(object)
			changed[name] = wrong
			if try(name, changed) {
				break
			}
		}
	}
	unknown := maps.Clone(object)
	unknown["plugintest_unknown"] = 1
	try("plugintest_unknown", unknown)
	return list
}
