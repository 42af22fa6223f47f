package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The bounds of arguments where the options name none.
const (
	defaultMaxBytes = 4 << 20
	defaultMaxDepth = 64
)

// maxNumber bounds the literal of a number, and maxExponent its exponent: comparing "1e999999999" with a minimum would
// take gigabytes.
const (
	maxNumber   = 1024
	maxExponent = 1024
)

// limits bound what is decoded.
type limits struct {
	bytes, depth int
	// lastWins reads a key that comes twice as encoding/json does, instead of refusing it.
	lastWins bool
}

// decode turns arguments into values as encoding/json does with UseNumber, within the limits. It refuses a key that comes
// twice in one object: a rule would look at one of the two and the provider perhaps at the other.
func (l limits) decode(raw []byte) (any, *Fault) {
	if len(raw) > l.bytes {
		return nil, &Fault{root, "size", fmt.Sprintf("must not be larger than %d bytes", l.bytes)}
	}
	if !json.Valid(raw) {
		return nil, &Fault{root, "json", "must be valid JSON"}
	}
	d := decoder{raw: raw, depth: l.depth, lastWins: l.lastWins}
	v, err := d.value()
	if err != nil {
		f := &Fault{Path: root, Constraint: "json", Detail: err.Error()}
		if e, ok := errors.AsType[*placed](err); ok {
			f.Path = location(e.path)
		}
		return nil, f
	}
	return v, nil
}

// placed is a decoder's error with its place, innermost step first while it climbs.
type placed struct {
	detail string
	path   []step
}

func (e *placed) Error() string { return e.detail }

func (e *placed) under(s step) *placed {
	e.path = append([]step{s}, e.path...)
	return e
}

// decoder reads JSON that is known to be valid, so that it has to look at no more than each value's first byte.
type decoder struct {
	raw      []byte
	at       int
	depth    int // levels that are left
	lastWins bool
}

func (d *decoder) value() (any, error) {
	d.space()
	switch d.raw[d.at] {
	case '{':
		return d.nested(d.object)
	case '[':
		return d.nested(d.array)
	case '"':
		return d.text()
	case 't':
		d.at += len("true")
		return true, nil
	case 'f':
		d.at += len("false")
		return false, nil
	case 'n':
		d.at += len("null")
		return nil, nil
	default:
		return d.number()
	}
}

func (d *decoder) nested(read func() (any, error)) (any, error) {
	if d.depth == 0 {
		return nil, &placed{detail: "is nested too deeply"}
	}
	d.depth--
	d.at++
	v, err := read()
	d.depth++
	return v, err
}

func (d *decoder) object() (any, error) {
	o := map[string]any{}
	for !d.end('}') {
		key, err := d.text()
		if err != nil {
			return nil, err
		}
		if _, twice := o[key]; twice && !d.lastWins {
			return nil, (&placed{detail: "is given twice"}).under(step{key: key})
		}
		d.space()
		d.at++ // the colon
		v, err := d.value()
		if err != nil {
			return nil, climb(err, step{key: key})
		}
		o[key] = v
	}
	return o, nil
}

func (d *decoder) array() (any, error) {
	a := []any{}
	for !d.end(']') {
		v, err := d.value()
		if err != nil {
			return nil, climb(err, step{index: len(a), inArray: true})
		}
		a = append(a, v)
	}
	return a, nil
}

func climb(err error, s step) error {
	if e, ok := errors.AsType[*placed](err); ok {
		return e.under(s)
	}
	return err
}

// end steps over a closing bracket or a comma and reports whether it was the bracket.
func (d *decoder) end(bracket byte) bool {
	d.space()
	if d.raw[d.at] == ',' {
		d.at++
		d.space()
		return false
	}
	if d.raw[d.at] == bracket {
		d.at++
		return true
	}
	return false
}

func (d *decoder) space() {
	for {
		switch d.raw[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return
		}
	}
}

func (d *decoder) text() (string, error) {
	start := d.at
	d.at++
	plain := true
	for d.raw[d.at] != '"' {
		if d.raw[d.at] == '\\' {
			plain = false
			d.at++
		}
		d.at++
	}
	d.at++
	inside := d.raw[start+1 : d.at-1]
	if plain && utf8.Valid(inside) {
		return string(inside), nil
	}
	var s string
	if err := json.Unmarshal(d.raw[start:d.at], &s); err != nil {
		return "", err
	}
	return s, nil
}

func (d *decoder) number() (any, error) {
	start := d.at
	for d.at < len(d.raw) && strings.IndexByte("+-.0123456789eE", d.raw[d.at]) >= 0 {
		d.at++
	}
	n := json.Number(d.raw[start:d.at])
	if !reasonable(string(n)) {
		return nil, &placed{detail: "is a number out of range"}
	}
	return n, nil
}

// reasonable reports whether a JSON number can be computed with.
func reasonable(n string) bool {
	if len(n) > maxNumber {
		return false
	}
	i := strings.IndexAny(n, "eE")
	if i < 0 {
		return true
	}
	exp, err := strconv.Atoi(n[i+1:])
	return err == nil && -maxExponent <= exp && exp <= maxExponent
}

// encode writes a value that decode read. Keys are sorted, so that equal values have equal bytes.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("schema: a decoded value did not encode: " + err.Error())
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
