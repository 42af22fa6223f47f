package schema

import (
	"iter"
	"maps"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// walkBudget bounds how often the validator may look at a value or a part of it. It follows every branch of a schema, so
// one that refers to itself twice at each level doubles the work with each level of the arguments: a few dozen bytes
// could keep the daemon busy for years. Schemas that branch are therefore walked with a budget before they are used.
const walkBudget = 200_000

// tooCostly is the fault of arguments that would exceed the budget.
var tooCostly = Fault{root, "size", "must be simpler: nested as they are, they take too long to check"}

// affordable reports whether validating v stays within the budget.
func (c *compiled) affordable(v any) bool {
	if !c.branching {
		return true
	}
	left := walkBudget
	walk(c.schema, v, nil, &left)
	return left > 0
}

// chain is what has been seen of one value on the way to here; the validator refuses a schema that comes back to itself.
type chain struct {
	schema *jsonschema.Schema
	parent *chain
}

func (c *chain) holds(s *jsonschema.Schema) bool {
	for ; c != nil; c = c.parent {
		if c.schema == s {
			return true
		}
	}
	return false
}

func walk(s *jsonschema.Schema, v any, seen *chain, left *int) {
	if *left--; *left <= 0 || seen.holds(s) {
		return
	}
	seen = &chain{s, seen}
	for b := range branches(s) {
		walk(b, v, seen, left)
	}
	switch v := v.(type) {
	case map[string]any:
		for key, part := range v {
			for p := range forProperty(s, key) {
				walk(p, part, nil, left)
			}
			if s.UnevaluatedProperties != nil {
				walk(s.UnevaluatedProperties, part, nil, left)
			}
		}
	case []any:
		for i, part := range v {
			if p := forItem(s, i); p != nil {
				walk(p, part, nil, left)
			}
			for _, p := range [...]*jsonschema.Schema{s.Contains, s.UnevaluatedItems} {
				if p != nil {
					walk(p, part, nil, left)
				}
			}
		}
	}
}

// branches yields the schemas that look at the same value as s.
func branches(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) {
		single := [...]*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}
		for _, b := range single {
			if b != nil && !yield(b) {
				return
			}
		}
		if s.DynamicRef != nil && !yield(s.DynamicRef.Ref) {
			return
		}
		for _, list := range [...][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
			for _, b := range list {
				if !yield(b) {
					return
				}
			}
		}
		for b := range maps.Values(s.DependentSchemas) {
			if !yield(b) {
				return
			}
		}
		for _, d := range s.Dependencies {
			if b, ok := d.(*jsonschema.Schema); ok && !yield(b) {
				return
			}
		}
	}
}

// forProperty yields the schemas by which s looks at one member of an object.
func forProperty(s *jsonschema.Schema, key string) iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) {
		known := false
		if p, ok := s.Properties[key]; ok {
			known = true
			if !yield(p) {
				return
			}
		}
		for re, p := range s.PatternProperties {
			if re.MatchString(key) {
				known = true
				if !yield(p) {
					return
				}
			}
		}
		if p, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !known {
			yield(p)
		}
	}
}

// forItem is the schema by which s looks at one element of an array, nil if there is none.
func forItem(s *jsonschema.Schema, i int) *jsonschema.Schema {
	list, rest := s.PrefixItems, s.Items2020
	switch items := s.Items.(type) { // drafts before 2020-12
	case *jsonschema.Schema:
		rest = items
	case []*jsonschema.Schema:
		list = items
		rest, _ = s.AdditionalItems.(*jsonschema.Schema)
	}
	if i < len(list) {
		return list[i]
	}
	return rest
}

// branching reports whether any schema reachable from s looks at a value in more than one way.
func branching(s *jsonschema.Schema) bool {
	seen := map[*jsonschema.Schema]bool{}
	todo := []*jsonschema.Schema{s}
	for len(todo) > 0 {
		s, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if s == nil || seen[s] {
			continue
		}
		seen[s] = true
		ways := 0
		for b := range branches(s) {
			ways++
			todo = append(todo, b)
		}
		if ways > 1 || len(s.PatternProperties) > 1 || s.Contains != nil || s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil {
			return true
		}
		todo = append(todo, parts(s)...)
	}
	return false
}

// parts lists the schemas by which s looks at anything inside a value.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	var list []*jsonschema.Schema
	for _, p := range s.Properties {
		list = append(list, p)
	}
	for _, p := range s.PatternProperties {
		list = append(list, p)
	}
	for _, held := range [...]any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch held := held.(type) {
		case *jsonschema.Schema:
			list = append(list, held)
		case []*jsonschema.Schema:
			list = append(list, held...)
		}
	}
	return append(append(list, s.PrefixItems...), s.Items2020)
}
