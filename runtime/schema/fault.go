package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// The bounds of what an agent is told about one call.
const (
	maxFaults  = 32
	maxAllowed = 1024 // bytes of allowed values
	maxForms   = 4    // members of a union that are described
)

// flatten makes a list of a validator's tree of errors, about v.
func flatten(v any, err *jsonschema.ValidationError) []Fault {
	f := flattener{v}
	faults := f.list(err)
	slices.SortFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Constraint, b.Constraint), cmp.Compare(a.Detail, b.Detail))
	})
	faults = slices.Compact(faults)
	if len(faults) > maxFaults {
		more := len(faults) - maxFaults + 1
		faults = append(faults[:maxFaults-1:maxFaults-1], Fault{root, "faults", fmt.Sprintf("have %d more faults", more)})
	}
	return faults
}

type flattener struct{ value any }

func (f flattener) list(err *jsonschema.ValidationError) []Fault {
	switch k := err.ErrorKind.(type) {
	case *kind.Required:
		return f.each(err, k.Missing, "required", "is required")
	case *kind.DependentRequired:
		return f.each(err, k.Missing, "dependentRequired", "is required beside "+k.Prop)
	case *kind.Dependency:
		return f.each(err, k.Missing, "dependencies", "is required beside "+k.Prop)
	case *kind.AdditionalProperties:
		return f.each(err, k.Properties, "additionalProperties", "is not an argument of this tool")
	case *kind.PropertyNames:
		return f.propertyName(k)
	case *kind.AnyOf:
		return f.union(err, "anyOf")
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			return f.union(err, "oneOf")
		}
		return f.one(err, "oneOf", "fits more than one of the forms of which it must fit exactly one")
	}
	if detail, constraint := describe(err.ErrorKind); detail != "" {
		return f.one(err, constraint, detail)
	}
	var all []Fault // Schema, Group, Reference, AllOf: what they hold says it
	for _, c := range err.Causes {
		all = append(all, f.list(c)...)
	}
	if all == nil {
		return f.one(err, keyword(err.ErrorKind), "does not fit the schema")
	}
	return all
}

func (f flattener) path(err *jsonschema.ValidationError, more ...step) string {
	return location(append(steps(f.value, err.InstanceLocation), more...))
}

func (f flattener) one(err *jsonschema.ValidationError, constraint, detail string) []Fault {
	return []Fault{{f.path(err), constraint, detail}}
}

func (f flattener) each(err *jsonschema.ValidationError, keys []string, constraint, detail string) []Fault {
	list := make([]Fault, len(keys))
	for i, key := range keys {
		list[i] = Fault{f.path(err, step{key: key}), constraint, detail}
	}
	return list
}

// propertyName reports a name that is refused. The validator reuses the memory of this error's location (v6.0.3,
// objValidate), so its last step may be another's. The name itself is sure: where only one object has it, that is the one.
func (f flattener) propertyName(k *kind.PropertyNames) []Fault {
	path := root
	if owners := having(f.value, k.Property, nil, nil); len(owners) == 1 {
		path = owners[0]
	}
	return []Fault{{path, "propertyNames", fmt.Sprintf("must not have a member named %q", k.Property)}}
}

// having lists the paths of the objects in v that have a member of that name.
func having(v any, name string, path []step, found []string) []string {
	switch whole := v.(type) {
	case map[string]any:
		if _, has := whole[name]; has {
			found = append(found, location(path))
		}
		for key, part := range whole {
			found = having(part, name, append(path, step{key: key}), found)
		}
	case []any:
		for i, part := range whole {
			found = having(part, name, append(path, step{index: i, inArray: true}), found)
		}
	}
	return found
}

// union explains why none of the members accepts a value. Members of which it is not even the type, or whose constant it
// does not carry, were not meant; if one remains, its faults are the answer.
func (f flattener) union(err *jsonschema.ValidationError, constraint string) []Fault {
	depth := len(err.InstanceLocation)
	var types []string
	var meant, tagged []*jsonschema.ValidationError
	for _, c := range err.Causes {
		if want := wrongType(c, depth); want != nil {
			types = append(types, want...)
			continue
		}
		meant = append(meant, c)
		if !wrongTag(c) {
			tagged = append(tagged, c)
		}
	}
	switch {
	case len(meant) == 0 && len(types) > 0:
		slices.Sort(types)
		return f.one(err, "type", "must be "+strings.Join(slices.Compact(types), " or "))
	case len(meant) == 1:
		return f.list(meant[0])
	case len(tagged) == 1:
		return f.list(tagged[0])
	}
	var forms []string
	for i, c := range meant[:min(len(meant), maxForms)] {
		if first := f.list(c); len(first) > 0 {
			forms = append(forms, fmt.Sprintf("(%d) %s %s", i+1, first[0].Path, first[0].Detail))
		}
	}
	return f.one(err, constraint, fmt.Sprintf("must fit one of %d forms: %s", len(err.Causes), strings.Join(forms, "; ")))
}

// wrongType returns the types that err asks for if all that is wrong is the type of the value at that depth.
func wrongType(err *jsonschema.ValidationError, depth int) []string {
	switch k := err.ErrorKind.(type) {
	case *kind.Type:
		if len(err.InstanceLocation) == depth {
			return k.Want
		}
	case *kind.Reference, *kind.AllOf, *kind.Group:
		if len(err.Causes) == 1 {
			return wrongType(err.Causes[0], depth)
		}
	}
	return nil
}

// wrongTag reports whether err holds a constant that the value does not carry.
func wrongTag(err *jsonschema.ValidationError) bool {
	if _, ok := err.ErrorKind.(*kind.Const); ok {
		return true
	}
	if e, ok := err.ErrorKind.(*kind.Enum); ok && len(e.Want) == 1 {
		return true
	}
	return slices.ContainsFunc(err.Causes, wrongTag)
}

// describe completes the sentence that a path begins. It never repeats the value: that may be secret.
func describe(k jsonschema.ErrorKind) (detail, constraint string) {
	constraint = keyword(k)
	switch k := k.(type) {
	case *kind.Type:
		detail = "must be " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		detail = "must be one of " + allowed(k.Want)
	case *kind.Const:
		detail = "must be " + allowed([]any{k.Want})
	case *kind.FalseSchema:
		detail, constraint = "is not allowed", "false"
	case *kind.Not:
		detail, constraint = "has a form that is not allowed", "not"
	case *kind.Format:
		detail = "must be a valid " + k.Want
	case *kind.Pattern:
		detail = "must match the pattern " + k.Want
	case *kind.MinLength:
		detail = fmt.Sprintf("must have at least %d characters", k.Want)
	case *kind.MaxLength:
		detail = fmt.Sprintf("must have at most %d characters", k.Want)
	case *kind.MinItems:
		detail = fmt.Sprintf("must have at least %d items", k.Want)
	case *kind.MaxItems:
		detail = fmt.Sprintf("must have at most %d items", k.Want)
	case *kind.AdditionalItems:
		detail = fmt.Sprintf("must have %d items fewer", k.Count)
	case *kind.MinProperties:
		detail = fmt.Sprintf("must have at least %d members", k.Want)
	case *kind.MaxProperties:
		detail = fmt.Sprintf("must have at most %d members", k.Want)
	case *kind.UniqueItems:
		detail = fmt.Sprintf("must not have equal items (%d and %d are)", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		detail = "must have an item that fits the schema's contains"
	case *kind.MinContains:
		detail = fmt.Sprintf("must have at least %d items that fit the schema's contains", k.Want)
	case *kind.MaxContains:
		detail = fmt.Sprintf("must have at most %d items that fit the schema's contains", k.Want)
	case *kind.Minimum:
		detail = "must be at least " + decimal(k.Want)
	case *kind.Maximum:
		detail = "must be at most " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		detail = "must be more than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		detail = "must be less than " + decimal(k.Want)
	case *kind.MultipleOf:
		detail = "must be a multiple of " + decimal(k.Want)
	case *kind.RefCycle:
		detail, constraint = "cannot be checked: the schema refers to itself", "$ref"
	}
	return detail, constraint
}

func keyword(k jsonschema.ErrorKind) string {
	if path := k.KeywordPath(); len(path) > 0 {
		return path[0]
	}
	return "schema"
}

// allowed lists values as JSON, within bounds.
func allowed(values []any) string {
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > maxAllowed {
			return b.String() + fmt.Sprintf("… (%d more, see parameters)", len(values)-i)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			raw = []byte(fmt.Sprint(v))
		}
		b.Write(raw)
	}
	return b.String()
}

func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	s, exact := r.FloatPrec()
	if !exact {
		return r.RatString()
	}
	return r.FloatString(s)
}
