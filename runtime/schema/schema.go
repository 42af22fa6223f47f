// Package schema holds arguments against a tool's JSON Schema (drafts 4 to 2020-12), and mends those that only differ in
// form: a number sent as text, a list of one sent bare.
//
// Arguments that are valid are never touched: their bytes reach the provider as the agent wrote them. A schema that
// cannot be used (malformed, or with references to elsewhere, which are never fetched) lets arguments pass.
package schema

import (
	"encoding/json"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Fault is one way in which arguments do not fit their schema.
type Fault struct {
	Path       string `json:"path"`       // arguments.options.count
	Constraint string `json:"constraint"` // the schema's keyword
	Detail     string `json:"detail"`     // completes the sentence that Path begins: "must be integer"
}

// Change is one coercion. It names types, never values: those may be secret.
type Change struct {
	Path string `json:"path"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Fit is the answer of [Cache.Fit].
type Fit struct {
	// Arguments are the bytes to run: those given, or coerced ones.
	Arguments json.RawMessage
	// Value is Arguments decoded, numbers as json.Number. It is nil if there are faults.
	Value   map[string]any
	Changes []Change
	// Faults are what is wrong, coercion tried; nil if the call may run. They are sorted by path.
	Faults []Fault
}

// Fit holds arguments against a tool's input schema, and their coerced copy if they do not fit. Whatever the schema says,
// arguments are one JSON object.
func (c *Cache) Fit(def *tool.Definition, args json.RawMessage) Fit {
	value, fault := c.limits.decode(args)
	if fault != nil {
		return Fit{Arguments: args, Faults: []Fault{*fault}}
	}
	compiled := c.compiled(def)
	object, isObject := value.(map[string]any)
	if isObject && compiled.accepts(value) {
		return Fit{Arguments: args, Value: object}
	}
	mended, changes := compiled.coerce(value)
	if object, isObject = mended.(map[string]any); !isObject {
		return Fit{Arguments: args, Faults: []Fault{{root, "type", "must be object"}}}
	}
	if faults := compiled.faults(mended); faults != nil {
		return Fit{Arguments: args, Faults: faults}
	}
	if changes == nil {
		return Fit{Arguments: args, Value: object}
	}
	return Fit{Arguments: encode(mended), Value: object, Changes: changes}
}
