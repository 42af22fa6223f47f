package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// ShowJSON is [Config.Show] in HCL's JSON syntax.
func (c *Config) ShowJSON(w io.Writer) error {
	var compact, indented bytes.Buffer
	c.writeJSON(&compact, grouped(members(reflect.ValueOf(c).Elem())))
	if err := json.Indent(&indented, compact.Bytes(), "", "  "); err != nil {
		return fmt.Errorf("show configuration: %w", err)
	}
	indented.WriteByte('\n')
	if _, err := indented.WriteTo(w); err != nil {
		return fmt.Errorf("show configuration: %w", err)
	}
	return nil
}

// grouped puts blocks with labels into one object by kind, and blocks of any kind into member lists, as JSON syntax has them.
func grouped(list []member) []member {
	var result []member
	at := map[string]int{}
	for _, m := range list {
		b, isBlock := m.value.(block)
		switch {
		case !isBlock:
			result = append(result, m)
		case b.label == "":
			result = append(result, member{m.key, grouped(b.members)})
		default:
			i, seen := at[m.key]
			if !seen {
				i = len(result)
				at[m.key] = i
				result = append(result, member{m.key, []member(nil)})
			}
			result[i].value = append(result[i].value.([]member), member{b.label, grouped(b.members)})
		}
	}
	return result
}

// templateEscape keeps texts from being read as templates.
var templateEscape = strings.NewReplacer("${", "$${", "%{", "%%{")

func (c *Config) writeJSON(w *bytes.Buffer, v any) {
	switch x := v.(type) {
	case []member:
		c.writeMembers(w, x, func(key string) string { return key })
	case object: // an expression, in which the keys are templates, too
		c.writeMembers(w, x, templateEscape.Replace)
	case []any:
		w.WriteByte('[')
		for i := range x {
			if i > 0 {
				w.WriteByte(',')
			}
			c.writeJSON(w, x[i])
		}
		w.WriteByte(']')
	case text:
		if ref := c.ref(string(x)); ref != "" {
			w.WriteString(encoded("${secret(" + encoded(ref) + ")}"))
			return
		}
		w.WriteString(encoded(templateEscape.Replace(c.Mask(string(x)))))
	case expression:
		w.WriteString(encoded(string(x)))
	default:
		w.WriteString(encoded(x))
	}
}

func (c *Config) writeMembers(w *bytes.Buffer, list []member, name func(string) string) {
	w.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteString(encoded(name(m.key)))
		w.WriteByte(':')
		c.writeJSON(w, m.value)
	}
	w.WriteByte('}')
}

// encoded is a scalar in JSON, with "&&" of conditions left readable. Every value that reaches it encodes.
func encoded(v any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Errorf("config: show %T: %w", v, err))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
