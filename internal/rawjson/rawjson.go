// Package rawjson finds the parts of a JSON text without decoding them: what one side wrote reaches the other as the same
// bytes, and a large result costs no second decode.
//
// The text is checked once, as a whole, with [Valid]. On anything else the functions end early, but never run out of bounds.
package rawjson

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Valid reports whether raw is one JSON value in UTF-8 (RFC 8259 section 8.1). [json.Valid] alone lets bytes pass that are
// no characters, in whose place a decoder puts U+FFFD without a word.
func Valid(raw []byte) bool { return utf8.Valid(raw) && json.Valid(raw) }

// Members calls visit with every key and value of a JSON object, in order. It reports whether raw is an object.
func Members(raw []byte, visit func(key string, value json.RawMessage)) bool {
	i := skipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return false
	}
	for i = skipSpace(raw, i+1); i < len(raw) && raw[i] == '"'; {
		end := skipString(raw, i)
		key := raw[i:end]
		i = skipSpace(raw, end)
		if i >= len(raw) || raw[i] != ':' {
			return true
		}
		start := skipSpace(raw, i+1)
		i = skipValue(raw, start)
		visit(unquote(key), raw[start:i:i])
		if i = skipSpace(raw, i); i < len(raw) && raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
	}
	return true
}

// Elements calls visit with every element of a JSON array, in order. It reports whether raw is an array.
func Elements(raw []byte, visit func(value json.RawMessage)) bool {
	i := skipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '[' {
		return false
	}
	for i = skipSpace(raw, i+1); i < len(raw) && raw[i] != ']'; {
		end := skipValue(raw, i)
		if end == i {
			return true
		}
		visit(raw[i:end:end])
		if i = skipSpace(raw, end); i < len(raw) && raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
	}
	return true
}

func skipSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\r' || raw[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index behind the string that starts with the quote at i.
func skipString(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// skipValue returns the index behind the value that starts at i.
func skipValue(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			i = skipString(raw, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

// unquote decodes what is quoted like a JSON string; most hold no escape and cost one copy.
func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') >= 0 {
		var s string
		if json.Unmarshal(quoted, &s) != nil {
			return ""
		}
		return s
	}
	if len(quoted) < 2 {
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}

// String returns the text of a JSON string. ok is false, and the text "", for any other value.
func String(raw json.RawMessage) (text string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	return unquote(raw), true
}

// IsObject reports whether a value is an object.
func IsObject(raw json.RawMessage) bool {
	i := skipSpace(raw, 0)
	return i < len(raw) && raw[i] == '{'
}

// IsNull reports whether a value is absent or null.
func IsNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
