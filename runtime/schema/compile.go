package schema

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaLimits bound a schema's source.
var schemaLimits = limits{bytes: 8 << 20, depth: 256, lastWins: true}

// resource is the location under which the schema itself is compiled; its own $id may say otherwise.
const resource = "tool:schema"

// compiled is a schema that is ready for use; one without a schema accepts everything.
type compiled struct {
	schema *jsonschema.Schema
	// branching says that arguments have to be measured before they are validated, see [walkBudget].
	branching bool
}

// compile reads a schema. Where it does not say which draft it is written in, and is none of the latest, older ones are
// tried: tuples as "items" and a boolean "exclusiveMinimum" are still about.
func compile(source []byte) (c *compiled, err error) {
	defer func() { // the compiler meets foreign bytes
		if v := recover(); v != nil {
			c, err = nil, fmt.Errorf("the schema makes its compiler panic: %v", v)
		}
	}()
	var first error
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7, jsonschema.Draft4} {
		doc, fault := schemaLimits.decode(source)
		if fault != nil {
			return nil, fmt.Errorf("the schema %s", fault.Detail)
		}
		if bytes.Contains(source, []byte(`"nullable"`)) {
			doc = nullable(doc)
		}
		s, err := compileAs(draft, doc)
		if err == nil {
			return &compiled{schema: s, branching: branching(s)}, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func compileAs(draft *jsonschema.Draft, doc any) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	c.UseLoader(nothingElse{})
	c.UseRegexpEngine(pattern)
	if err := c.AddResource(resource, doc); err != nil {
		return nil, err
	}
	return c.Compile(resource)
}

// nothingElse refuses what a schema refers to outside itself: nothing is fetched or read because a tool's author says so.
type nothingElse struct{}

func (nothingElse) Load(url string) (any, error) {
	return nil, errors.New("references outside the schema are not followed")
}

// pattern compiles a regular expression. JSON Schema means ECMA 262, which has more than Go's linear-time ones; such a
// pattern is left unchecked rather than the whole schema.
func pattern(s string) (jsonschema.Regexp, error) {
	if re, err := regexp.Compile(s); err == nil {
		return re, nil
	}
	return unchecked(s), nil
}

type unchecked string

func (unchecked) MatchString(string) bool { return true }
func (u unchecked) String() string        { return string(u) }

// accepts reports whether v is valid.
func (c *compiled) accepts(v any) bool {
	return c.schema == nil || c.affordable(v) && c.schema.Validate(v) == nil
}

// faults lists what is wrong with v; nil if it is valid.
func (c *compiled) faults(v any) []Fault {
	switch {
	case c.schema == nil:
		return nil
	case !c.affordable(v):
		return []Fault{tooCostly}
	}
	err := c.schema.Validate(v)
	if err == nil {
		return nil
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []Fault{{root, "schema", err.Error()}}
	}
	return flatten(v, invalid)
}
