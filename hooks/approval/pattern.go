package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// rest is the key of a pattern that lets further arguments be whatever they are.
const rest = "*"

// Pattern says which arguments a standing grant covers: the JSON text of each argument, in which * stands for any text and
// \ takes the meaning from the character after it. The key "*" with the value "*" covers arguments that are not named;
// without it there must be no others.
type Pattern map[string]string

// PatternOf is the pattern that covers exactly these arguments. It fails if they are no JSON object.
func PatternOf(arguments json.RawMessage) (Pattern, error) {
	values, err := fields(arguments)
	if err != nil {
		return nil, err
	}
	p := Pattern{}
	for k, v := range values {
		p[k] = escape.Replace(v)
	}
	if _, odd := p[rest]; odd {
		return nil, fmt.Errorf("there is an argument named %q", rest)
	}
	return p, nil
}

var escape = strings.NewReplacer(`\`, `\\`, `*`, `\*`)

// fields are the members of a JSON object, each as its compact text.
func fields(arguments json.RawMessage) (map[string]string, error) {
	d := json.NewDecoder(bytes.NewReader(arguments))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the arguments are no JSON object")
	}
	out := map[string]string{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := t.(string)
		if !ok {
			return nil, errors.New("the arguments are no JSON object")
		}
		if _, twice := out[key]; twice { // who reads it decides which one counts
			return nil, fmt.Errorf("the argument %q is there twice", key)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if err := json.Compact(&b, raw); err != nil {
			return nil, err
		}
		out[key] = b.String()
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the arguments")
	}
	return out, nil
}

// Covers reports whether the pattern covers these arguments.
func (p Pattern) Covers(arguments json.RawMessage) bool {
	values, err := fields(arguments)
	if err != nil {
		return false
	}
	for k, want := range p {
		got, ok := values[k]
		if k == rest {
			continue
		}
		if !ok || !matches(want, got) {
			return false
		}
		delete(values, k)
	}
	_, open := p[rest]
	return open || len(values) == 0
}

// matches matches a text against a pattern of literal stretches between asterisks.
func matches(pattern, text string) bool {
	parts := split(pattern)
	if len(parts) == 1 {
		return text == parts[0]
	}
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	if text, ok = strings.CutSuffix(text, last); !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		if _, text, ok = strings.Cut(text, part); !ok {
			return false
		}
	}
	return true
}

// split parts a pattern at its asterisks and takes the escapes away.
func split(pattern string) []string {
	var parts []string
	var part []byte
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '*':
			parts, part = append(parts, string(part)), nil
		case c == '\\' && i+1 < len(pattern):
			i++
			part = append(part, pattern[i])
		default:
			part = append(part, c)
		}
	}
	return append(parts, string(part))
}

// String is the pattern for people: name=value, sorted by name.
func (p Pattern) String() string {
	if len(p) == 0 {
		return "no arguments"
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(p)) {
		if k == rest {
			out = append(out, "any other arguments")
		} else {
			out = append(out, k+"="+p[k])
		}
	}
	return strings.Join(out, ", ")
}
