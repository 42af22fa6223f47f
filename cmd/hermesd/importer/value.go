package importer

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"unicode/utf16"
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

// fields collects an object's members. Of two of one name the later one counts, as in JavaScript.
type fields struct {
	list []member
	at   map[string]int
}

func (f *fields) set(name string, v value) {
	if i, known := f.at[name]; known {
		f.list[i].value = v
		return
	}
	if f.at == nil {
		f.at = map[string]int{}
	}
	f.at[name] = len(f.list)
	f.list = append(f.list, member{name, v})
}

// walk visits the texts in a value.
func (v value) walk(visit func(s string)) {
	if v.kind == str {
		visit(v.text)
	}
	for _, item := range v.items {
		item.walk(visit)
	}
	for _, m := range v.members {
		m.value.walk(visit)
	}
}

// size is how many values are in a value, itself among them.
func (v value) size() int {
	n := 1
	for _, item := range v.items {
		n += item.size()
	}
	for _, m := range v.members {
		n += m.value.size()
	}
	return n
}

func (v value) get(name string) (value, bool) {
	for _, m := range v.members {
		if m.name == name {
			return m.value, true
		}
	}
	return value{}, false
}

// truth reads a boolean, also from the words that YAML's users write. ok is false where it is none.
func (v value) truth() (on, ok bool) {
	switch strings.ToLower(v.text) {
	case "true", "yes", "on", "1":
		return true, true
	case "false", "no", "off", "0", "":
		return false, v.kind != object && v.kind != array && v.kind != null
	}
	return false, false
}

// isTrue is a boolean that is certainly true.
func (v value) isTrue() bool {
	on, ok := v.truth()
	return on && ok
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
	data := utf8Text(f.Data)
	switch strings.ToLower(filepath.Ext(f.Path)) {
	case ".yaml", ".yml":
		return decodeYAML(data)
	default:
		return decodeJSON(data)
	}
}

// utf8Text undoes the UTF-16, with a byte order mark, in which Windows' programs may write files.
func utf8Text(data []byte) []byte {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	case !bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		return data
	}
	var units []uint16
	for data = data[2:]; len(data) >= 2; data = data[2:] {
		units = append(units, order.Uint16(data))
	}
	return []byte(string(utf16.Decode(units)))
}
