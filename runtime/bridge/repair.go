package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

var errTruncated = errors.New("not JSON: the text ends before it is complete; send it again, whole")

// repair mends the two slips that models make in long JSON: a missing comma between members, and a comma after the last
// one. Anything else is refused, truncated text above all: what is missing cannot be guessed. Errors give positions and
// reasons and echo nothing of the text, which may hold what must not be repeated.
func repair(text []byte) (json.RawMessage, error) {
	var (
		out       = make([]byte, 0, len(text)+16)
		open      []byte // the closing brackets that are due
		value     bool   // a value ended just before, so that another one needs a comma
		lastComma = -1   // where in out a comma stands with nothing after it
	)
	begin := func() { // a value, or a member's name
		if value {
			out = append(out, ',')
		}
		value, lastComma = false, -1
	}
	for i := 0; i < len(text); {
		end := i + 1
		switch c := text[i]; c {
		case ' ', '\t', '\r', '\n':
		case '"':
			begin()
			var closed bool
			if end, closed = stringEnd(text, i); !closed {
				return nil, errTruncated
			}
			value = true
		case '{', '[':
			begin()
			open = append(open, c+2) // in ASCII each closing bracket stands two after its opening one
		case '}', ']':
			if len(open) == 0 || open[len(open)-1] != c {
				return nil, fmt.Errorf("not JSON: a bracket at position %d closes nothing", i+1)
			}
			open = open[:len(open)-1]
			if lastComma >= 0 {
				out = slices.Delete(out, lastComma, lastComma+1)
			}
			value, lastComma = true, -1
		case ',':
			value, lastComma = false, len(out)
		case ':':
			value, lastComma = false, -1
		default:
			begin()
			for end < len(text) && !strings.ContainsRune(" \t\r\n,:{}[]\"", rune(text[end])) {
				end++
			}
			value = true
		}
		out = append(out, text[i:end]...)
		i = end
	}
	if len(open) > 0 {
		return nil, errTruncated
	}
	if !json.Valid(out) {
		return nil, reason(text)
	}
	return out, nil
}

// stringEnd returns the position after the string that begins at i, or the end of a text in which it is not closed.
func stringEnd(text []byte, i int) (end int, closed bool) {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1, true
		}
	}
	return len(text), false
}

// reason is what the parser says about a text that is no JSON, without the character that it quotes.
func reason(text []byte) error {
	var any json.RawMessage
	var syntax *json.SyntaxError
	if !errors.As(json.Unmarshal(text, &any), &syntax) {
		return errTruncated
	}
	what, ok := strings.CutPrefix(syntax.Error(), "invalid character ")
	if !ok {
		return errTruncated // the parser's only other complaint is an unexpected end
	}
	if quoted, err := strconv.QuotedPrefix(what); err == nil {
		what = what[len(quoted):]
	}
	return fmt.Errorf("not JSON: unexpected character at position %d, %s", syntax.Offset, strings.TrimSpace(what))
}
