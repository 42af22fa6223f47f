package schema

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// mendBudget bounds the steps of one coercion, each of which may validate the value that it looks at.
const mendBudget = 20_000

// maxIntegerDigits bounds an integer that is computed from text such as "1e9".
const maxIntegerDigits = 40

// coerce returns v with what only differs in form put right, and the changes. Whether the outcome is valid is for the
// caller to find out; v itself stays as it is. Whatever is valid by itself is left alone, a string that may be a string
// is never parsed, and what cannot be read keeps its form.
func (c *compiled) coerce(v any) (any, []Change) {
	m := &mender{left: mendBudget, wrap: true}
	v = m.asObject(v, nil, true)
	if c.schema != nil && c.affordable(v) {
		v = m.mend(c.schema, v, nil)
	}
	return v, m.changes
}

type mender struct {
	left    int
	wrap    bool // a lone value may become a list of one
	changes []Change
}

func (m *mender) mend(s *jsonschema.Schema, v any, path []step) any {
	if m.left--; m.left <= 0 || len(path) > defaultMaxDepth || s.Validate(v) == nil {
		return v
	}
	if s.Ref != nil {
		v = m.mend(s.Ref, v, path)
	}
	for _, b := range s.AllOf {
		v = m.mend(b, v, path)
	}
	v = m.retype(s, v, path)
	v = m.inside(s, v, path)
	for _, members := range [...][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		v = m.anyMember(members, v, path)
	}
	if s.If != nil {
		branch := s.Else
		if s.If.Validate(v) == nil {
			branch = s.Then
		}
		if branch != nil {
			v = m.mend(branch, v, path)
		}
	}
	return v
}

// anyMember mends v by the first member of a union that then accepts it; wrapping is the last resort.
func (m *mender) anyMember(members []*jsonschema.Schema, v any, path []step) any {
	for _, wrap := range [...]bool{false, true} {
		for _, s := range members {
			if out, ok := m.attempt(wrap, func() any { return m.mend(s, v, path) }, s); ok {
				return out
			}
		}
	}
	return v
}

// attempt runs one way to mend and takes its changes back unless s accepts the outcome.
func (m *mender) attempt(wrap bool, way func() any, s *jsonschema.Schema) (any, bool) {
	mark, before := len(m.changes), m.wrap
	m.wrap = wrap && before
	out := way()
	m.wrap = before
	if m.left > 0 && s.Validate(out) == nil {
		return out, true
	}
	m.changes = m.changes[:mark]
	return nil, false
}

// retype gives v one of the types that s names.
func (m *mender) retype(s *jsonschema.Schema, v any, path []step) any {
	if s.Types == nil {
		return v
	}
	allowed := s.Types.ToStrings()
	if isOf(v, allowed) {
		return v
	}
	text, isText := v.(string)
	for _, t := range allowed {
		if !isText {
			break
		}
		if out, ok := read(t, text, len(s.Required) == 0); ok {
			return m.changed(path, v, out)
		}
	}
	looksLikeList := isText && (strings.HasPrefix(strings.TrimSpace(text), "[") || strings.TrimSpace(text) == "")
	if v == nil || !m.wrap || looksLikeList || !slices.Contains(allowed, "array") {
		return v
	}
	out, ok := m.attempt(true, func() any {
		return m.inside(s, m.changed(path, v, []any{v}), path)
	}, s)
	if ok {
		return out
	}
	return v
}

// inside mends the parts of an object or an array.
func (m *mender) inside(s *jsonschema.Schema, v any, path []step) any {
	switch whole := v.(type) {
	case map[string]any:
		var copied map[string]any
		for _, key := range slices.Sorted(maps.Keys(whole)) {
			mark, part := len(m.changes), whole[key]
			for p := range forProperty(s, key) {
				part = m.mend(p, part, append(path, step{key: key}))
			}
			if len(m.changes) > mark {
				if copied == nil {
					copied = maps.Clone(whole)
				}
				copied[key] = part
			}
		}
		if copied != nil {
			return copied
		}
	case []any:
		var copied []any
		for i, part := range whole {
			mark := len(m.changes)
			if p := forItem(s, i); p != nil {
				part = m.mend(p, part, append(path, step{index: i, inArray: true}))
			}
			if len(m.changes) > mark {
				if copied == nil {
					copied = slices.Clone(whole)
				}
				copied[i] = part
			}
		}
		if copied != nil {
			return copied
		}
	}
	return v
}

// asObject reads arguments that came as text; they are an object whatever the schema says.
func (m *mender) asObject(v any, path []step, blank bool) any {
	if text, ok := v.(string); ok {
		if out, ok := read("object", text, blank); ok {
			return m.changed(path, v, out)
		}
	}
	return v
}

func (m *mender) changed(path []step, from, to any) any {
	m.changes = append(m.changes, Change{Path: location(path), From: typeName(from), To: typeName(to)})
	return to
}

// read reads text as a value of a type. Blank text is an empty object where blank says so.
func read(typ, text string, blank bool) (any, bool) {
	text = strings.TrimSpace(text)
	switch typ {
	case "null":
		return nil, text == "null"
	case "boolean":
		yes := strings.EqualFold(text, "true")
		return yes, yes || strings.EqualFold(text, "false")
	case "number":
		return json.Number(text), isNumber(text)
	case "integer":
		return integer(text)
	case "array":
		return container[[]any](text)
	case "object":
		if text == "" {
			return map[string]any{}, blank
		}
		return container[map[string]any](text)
	}
	return nil, false
}

func container[T any](text string) (any, bool) {
	v, fault := limits{bytes: len(text), depth: defaultMaxDepth}.decode([]byte(text))
	if fault != nil {
		return nil, false
	}
	out, ok := v.(T)
	return out, ok
}

// isNumber reports whether text is a number as JSON writes it: neither "inf" nor "0x1F" nor "007".
func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text)) && reasonable(text)
}

func integer(text string) (any, bool) {
	if !isNumber(text) {
		return nil, false
	}
	if !strings.ContainsAny(text, ".eE") {
		return json.Number(text), true
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || !r.IsInt() {
		return nil, false
	}
	n := r.Num().String()
	return json.Number(n), len(n) <= maxIntegerDigits
}

// isOf reports whether v is of one of the types.
func isOf(v any, types []string) bool {
	if n, ok := v.(json.Number); ok && slices.Contains(types, "integer") {
		if _, whole := integer(n.String()); whole {
			return true
		}
	}
	return slices.Contains(types, typeName(v))
}

// typeName is the JSON Schema type of a decoded value, as its literal form tells it.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}
