package schema

import (
	"slices"
)

// The keywords below which further schemas stand: as one, as a list, or by name. "items" and "dependencies" hold more
// than one form, so a value is looked at before it is walked.
var (
	oneSchema = []string{
		"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
	}
	listOfSchemas  = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	schemasByName  = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
	ownConstraints = []string{"$ref", "$dynamicRef", "allOf", "anyOf", "const", "if", "not", "oneOf"}
)

// nullable rewrites OpenAPI 3.0's "nullable: true" (Schema Object) as JSON Schema says it, everywhere in a schema.
func nullable(doc any) any {
	s, ok := doc.(map[string]any)
	if !ok {
		return doc
	}
	for _, k := range oneSchema {
		if _, ok := s[k].(map[string]any); ok {
			s[k] = nullable(s[k])
		}
	}
	for _, k := range listOfSchemas {
		if list, ok := s[k].([]any); ok {
			for i := range list {
				list[i] = nullable(list[i])
			}
		}
	}
	for _, k := range schemasByName {
		if named, ok := s[k].(map[string]any); ok {
			for name := range named {
				named[name] = nullable(named[name])
			}
		}
	}
	if s["nullable"] != true {
		return s
	}
	delete(s, "nullable")
	return orNull(s)
}

// orNull adds null to what a schema accepts: in its own type and enum where that is all that refuses it, since others may
// refer to what is inside it, else in a schema around it.
func orNull(s map[string]any) any {
	for _, k := range ownConstraints {
		if _, has := s[k]; has {
			return map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
		}
	}
	switch t := s["type"].(type) {
	case string:
		if t != "null" {
			s["type"] = []any{t, "null"}
		}
	case []any:
		if !slices.Contains(t, any("null")) {
			s["type"] = append(t, "null")
		}
	}
	if values, ok := s["enum"].([]any); ok && !slices.Contains(simple(values), nil) {
		s["enum"] = append(values, nil)
	}
	return s
}

// simple leaves out the values that cannot be compared.
func simple(values []any) []any {
	return slices.DeleteFunc(slices.Clone(values), func(v any) bool {
		switch v.(type) {
		case map[string]any, []any:
			return true
		}
		return false
	})
}
