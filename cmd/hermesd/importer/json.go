package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

func decodeJSON(data []byte) (value, error) {
	source := plainJSON(string(data))
	d := json.NewDecoder(strings.NewReader(source))
	d.UseNumber()
	v, err := nextJSON(d, maxDepth)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the object")
		}
	}
	if err == nil {
		return v, nil
	}
	where := position(source, d, err)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return value{}, fmt.Errorf("%s: it is not JSON: %w", where, err)
}

// position is where decoding failed, line and column from 1: at the end, or at the token after the last good one.
func position(source string, d *json.Decoder, err error) string {
	at := len(source)
	if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		rest := source[d.InputOffset():]
		at -= len(strings.TrimLeft(rest, " \t\r\n:,"))
	}
	before := source[:at]
	return fmt.Sprintf("line %d, column %d", strings.Count(before, "\n")+1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])+1)
}

// maxDepth bounds how deep lists and objects stand in each other.
const maxDepth = 100

func nextJSON(d *json.Decoder, depth int) (value, error) {
	if depth == 0 {
		return value{}, fmt.Errorf("it has more than %d levels", maxDepth)
	}
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
		var found fields
		for d.More() {
			name := ""
			if v.kind == object {
				key, err := d.Token()
				if err != nil {
					return value{}, err
				}
				name, _ = key.(string)
			}
			item, err := nextJSON(d, depth-1)
			if err != nil {
				return value{}, err
			}
			if v.kind == object {
				found.set(name, item)
			} else {
				v.items = append(v.items, item)
			}
		}
		v.members = found.list
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
