package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kind is what a value is.
type kind string

const (
	null    kind = "null"
	boolean kind = "a boolean"
	number  kind = "a number"
	str     kind = "a text"
	array   kind = "a list"
	object  kind = "an object"
)

// value is a value of JSON or YAML. Objects keep their order: what is written is in the order of what was read.
type value struct {
	kind    kind
	text    string // of a scalar
	items   []value
	members []member
}

type member struct {
	name  string
	value value
}

func (v value) get(name string) (value, bool) {
	for _, m := range v.members {
		if m.name == name {
			return m.value, true
		}
	}
	return value{}, false
}

// isTrue reads a boolean, also from the words that YAML's users write.
func (v value) isTrue() bool {
	switch strings.ToLower(v.text) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// texts are a list's texts, or the one that stands for a list.
func (v value) texts() ([]string, bool) {
	if v.kind == str || v.kind == number {
		return []string{v.text}, true
	}
	var list []string
	for _, item := range v.items {
		if item.kind != str && item.kind != number && item.kind != boolean {
			return nil, false
		}
		list = append(list, item.text)
	}
	return list, v.kind == array
}

// decode reads a file by its ending.
func decode(f *File) (value, error) {
	switch strings.ToLower(filepath.Ext(f.Path)) {
	case ".yaml", ".yml":
		return decodeYAML(f.Data)
	default:
		return decodeJSON(f.Data)
	}
}

func decodeJSON(data []byte) (value, error) {
	d := json.NewDecoder(strings.NewReader(plainJSON(string(data))))
	d.UseNumber()
	v, err := nextJSON(d)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the object")
		}
	}
	if err != nil {
		return value{}, fmt.Errorf("it is not JSON: %w", err)
	}
	return v, nil
}

func nextJSON(d *json.Decoder) (value, error) {
	token, err := d.Token()
	if err != nil {
		return value{}, err
	}
	switch t := token.(type) {
	case nil:
		return value{kind: null}, nil
	case bool:
		return value{kind: boolean, text: strconv.FormatBool(t)}, nil
	case json.Number:
		return value{kind: number, text: t.String()}, nil
	case string:
		return value{kind: str, text: t}, nil
	case json.Delim:
		v := value{kind: array}
		if t == '{' {
			v.kind = object
		}
		for d.More() {
			name := ""
			if v.kind == object {
				key, err := d.Token()
				if err != nil {
					return value{}, err
				}
				name, _ = key.(string)
			}
			item, err := nextJSON(d)
			if err != nil {
				return value{}, err
			}
			if v.kind == object {
				v.members = append(v.members, member{name, item})
			} else {
				v.items = append(v.items, item)
			}
		}
		_, err := d.Token()
		return v, err
	default:
		return value{}, fmt.Errorf("unexpected %v", token)
	}
}

// plainJSON is JSON with comments and trailing commas, as editors write it, without them. Positions stay the same.
func plainJSON(s string) string {
	out := []byte(strings.TrimPrefix(s, "\ufeff"))
	comma := -1 // the last one that nothing but space has followed
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			comma = -1
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			i = blank(out, i) - 1
		case c == ',':
			comma = i
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			comma = -1
		}
	}
	return string(out)
}

// blank makes a comment that starts at i space, and returns where it ends.
func blank(out []byte, i int) int {
	line := out[i+1] == '/'
	out[i], out[i+1] = ' ', ' ' // before the loop: "/*/" ends nothing
	last := byte(' ')
	for i += 2; i < len(out); i++ {
		c := out[i]
		if line && c == '\n' {
			return i
		}
		if c != '\n' {
			out[i] = ' '
		}
		if !line && c == '/' && last == '*' {
			return i + 1
		}
		last = c
	}
	return i
}

func decodeYAML(data []byte) (value, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return value{}, fmt.Errorf("it is not YAML: %w", err)
	}
	if len(root.Content) == 0 {
		return value{kind: null}, nil
	}
	budget := maxNodes
	return fromYAML(root.Content[0], &budget)
}

// maxNodes bounds what a YAML file can become: aliases multiply.
const maxNodes = 100_000

func fromYAML(n *yaml.Node, budget *int) (value, error) {
	if *budget--; *budget < 0 {
		return value{}, fmt.Errorf("the YAML has more than %d values", maxNodes)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return fromYAML(n.Alias, budget)
	case yaml.SequenceNode:
		v := value{kind: array}
		for _, c := range n.Content {
			item, err := fromYAML(c, budget)
			if err != nil {
				return value{}, err
			}
			v.items = append(v.items, item)
		}
		return v, nil
	case yaml.MappingNode:
		v := value{kind: object}
		for i := 0; i+1 < len(n.Content); i += 2 {
			item, err := fromYAML(n.Content[i+1], budget)
			if err != nil {
				return value{}, err
			}
			v.members = append(v.members, member{n.Content[i].Value, item})
		}
		return v, nil
	}
	v := value{kind: str, text: n.Value}
	switch n.ShortTag() {
	case "!!null":
		v.kind, v.text = null, ""
	case "!!bool":
		v.kind = boolean
	case "!!int", "!!float":
		v.kind = number
	}
	return v, nil
}
