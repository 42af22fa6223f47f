// Package schema holds arguments against a tool's JSON Schema (drafts 4 to 2020-12), and mends those that only differ in
// form: a number sent as text, a list of one sent bare.
package schema

import "encoding/json"

// Fault is one way in which arguments do not fit their schema.
type Fault struct {
	Path       string `json:"path"`       // arguments.options.count
	Constraint string `json:"constraint"` // the schema's keyword
	Detail     string `json:"detail"`     // completes the sentence that Path begins: "must be integer"
}

// Change is one coercion.
type Change struct {
	Path string `json:"path"`
	From string `json:"from"` // JSON types
	To   string `json:"to"`
}

// Fit is the answer of [Cache.Fit].
type Fit struct {
	// Arguments are the bytes to run: those given, or coerced ones.
	Arguments json.RawMessage
	// Value is Arguments decoded, numbers as json.Number.
	Value   map[string]any
	Changes []Change
	// Faults are what is still wrong; nil if the call may run.
	Faults []Fault
}
