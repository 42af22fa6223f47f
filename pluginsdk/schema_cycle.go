package pluginsdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// errEndless refuses schemas such as {"$ref": "#"}: the validator would follow them until the stack overflows, which
// ends the process.
var errEndless = errors.New("a reference leads back to itself without going further into the value")

// inPlace are the keywords whose schemas speak of the same value as the schema that holds them.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}

// cycles looks for references that go round in place. It does not resolve URIs: a reference may mean its fragment in
// every resource of the schema (the root and whatever has an $id), which refuses a few odd schemas too many and none too
// few.
type cycles struct {
	resources []any
	anchors   map[string][]any // by name
	state     map[uintptr]int  // of the schemas passed: 1 while inside, 2 when found to end
}

// checkCycles returns errEndless if validation by the schema would not end. It looks at the schema as the validator has
// read it, which takes "$Ref" for "$ref".
func checkCycles(root *jsonschema.Schema) error {
	raw, err := json.Marshal(root)
	if err != nil {
		return err
	}
	if !bytes.Contains(raw, []byte(`"$ref":`)) && !bytes.Contains(raw, []byte(`"$dynamicRef":`)) {
		return nil // most schemas
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return err
	}
	c := &cycles{resources: []any{tree}, anchors: map[string][]any{}, state: map[uintptr]int{}}
	var all []map[string]any
	c.collect(tree, &all)
	for _, s := range all {
		if !c.ends(s) {
			return errEndless
		}
	}
	return nil
}

// collect finds every object of the tree, whether it is a schema or not: more than needed does no harm.
func (c *cycles) collect(node any, all *[]map[string]any) {
	switch v := node.(type) {
	case []any:
		for _, e := range v {
			c.collect(e, all)
		}
	case map[string]any:
		*all = append(*all, v)
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := v[key].(string); ok {
				c.anchors[name] = append(c.anchors[name], v)
			}
		}
		if _, ok := v["$id"]; ok {
			c.resources = append(c.resources, v)
		}
		for _, e := range v {
			c.collect(e, all)
		}
	}
}

// ends reports whether following s in place comes to an end.
func (c *cycles) ends(node any) bool {
	switch v := node.(type) {
	case []any:
		for _, e := range v {
			if !c.ends(e) {
				return false
			}
		}
	case map[string]any:
		key := reflect.ValueOf(v).Pointer()
		switch c.state[key] {
		case 1:
			return false
		case 2:
			return true
		}
		c.state[key] = 1
		for _, target := range c.targets(v) {
			if !c.ends(target) {
				return false
			}
		}
		c.state[key] = 2
	}
	return true
}

// targets are the schemas that s applies to the same value.
func (c *cycles) targets(s map[string]any) []any {
	var out []any
	for _, key := range inPlace {
		v := s[key]
		if byName, ok := v.(map[string]any); ok && strings.HasPrefix(key, "depend") {
			for _, e := range byName {
				out = append(out, e)
			}
			continue
		}
		out = append(out, v)
	}
	for _, key := range []string{"$ref", "$dynamicRef"} {
		ref, ok := s[key].(string)
		if !ok {
			continue
		}
		_, fragment, _ := strings.Cut(ref, "#")
		if plain, err := url.PathUnescape(fragment); err == nil {
			fragment = plain
		}
		out = append(out, c.anchors[fragment]...)
		if fragment == "" || strings.HasPrefix(fragment, "/") {
			for _, r := range c.resources {
				out = append(out, pointed(r, fragment))
			}
		}
	}
	return out
}

// pointed follows a JSON Pointer (RFC 6901); nil if it leads nowhere.
func pointed(node any, pointer string) any {
	if pointer == "" {
		return node
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch v := node.(type) {
		case map[string]any:
			node = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			node = v[i]
		default:
			return nil
		}
	}
	return node
}
