package redact

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how often escapes are undone: JSON in JSON in JSON.
const maxDepth = 3

// view is a text with its escapes undone, and where each byte comes from. The zero at is the text as it was.
type view struct {
	text  string
	at    []int32 // the place in the source of each byte, and of the end; nil: the same
	depth int
}

// from is where the byte i comes from.
func (v *view) from(i int) int {
	if v.at == nil {
		return i
	}
	return int(v.at[i])
}

// end is where what the byte before i comes from ends: an escape belongs to each of its bytes as a whole.
func (v *view) end(i int) int {
	if v.at == nil {
		return i
	}
	for i < len(v.text) && v.at[i] == v.at[i-1] {
		i++
	}
	return int(v.at[i])
}

// decode undoes the escapes that begin with lead. It reports whether there is one.
func (v view) decode(lead byte, one func(dst []byte, s string) ([]byte, int)) (view, bool) {
	if strings.IndexByte(v.text, lead) < 0 {
		return view{}, false
	}
	text, at, changed := make([]byte, 0, len(v.text)), make([]int32, 0, len(v.text)+1), false
	for i := 0; i < len(v.text); {
		n, before := 0, len(text)
		if v.text[i] == lead {
			text, n = one(text, v.text[i:])
		}
		changed = changed || n > 0
		if n == 0 {
			text, n = append(text, v.text[i]), 1
		}
		for range len(text) - before {
			at = append(at, int32(v.from(i)))
		}
		i += n
	}
	at = append(at, int32(v.from(len(v.text))))
	return view{string(text), at, v.depth + 1}, changed
}

// undo is decode for those who need the text alone.
func undo(s string, lead byte, one func(dst []byte, s string) ([]byte, int)) (text string, changed bool) {
	i := strings.IndexByte(s, lead)
	if i < 0 {
		return s, false
	}
	out := make([]byte, 0, len(s))
	for ; i >= 0; i = strings.IndexByte(s, lead) {
		var n int
		out, n = one(append(out, s[:i]...), s[i:])
		if n == 0 {
			out, n = append(out, lead), 1
		} else {
			changed = true
		}
		s = s[i+n:]
	}
	return string(append(out, s...)), changed
}

// backslash undoes one escape of JSON, Go, or a language like them, at the head of s. It returns its length, 0 if it is none.
func backslash(dst []byte, s string) ([]byte, int) {
	if len(s) < 2 {
		return dst, 0
	}
	switch c := s[1]; c {
	case '"', '\\', '/', '\'', '`':
		return append(dst, c), 2
	case 'x':
		if n, ok := hex(s, 2, 2); ok {
			return append(dst, byte(n)), 4
		}
	case 'u':
		if r, ok := hex(s, 2, 4); ok {
			if low, ok := hex(s, 8, 4); ok && s[6:8] == `\u` {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return utf8.AppendRune(dst, pair), 12
				}
			}
			return utf8.AppendRune(dst, r), 6
		}
	case 'U':
		if r, ok := hex(s, 2, 8); ok {
			return utf8.AppendRune(dst, r), 10
		}
	default:
		if i := strings.IndexByte(controls, c); i >= 0 {
			return append(dst, "\a\b\f\n\r\t\v"[i]), 2
		}
	}
	return dst, 0
}

// controls are the letters of control characters' escapes.
const controls = "abfnrtv"

// percent undoes one escape of a URL.
func percent(dst []byte, s string) ([]byte, int) {
	if n, ok := hex(s, 1, 2); ok {
		return append(dst, byte(n)), 3
	}
	return dst, 0
}

// hex reads n hexadecimal digits of s.
func hex(s string, from, n int) (rune, bool) {
	if len(s) < from+n {
		return 0, false
	}
	v, err := strconv.ParseUint(s[from:from+n], 16, 31)
	return rune(v), err == nil
}
