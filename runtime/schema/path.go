package schema

import (
	"strconv"
	"strings"
)

// root is what every path begins with.
const root = "arguments"

// step leads from a value to one inside it.
type step struct {
	key     string
	index   int
	inArray bool
}

// location writes a path as agents read it: arguments.options.tags[2], and arguments["odd key"] where a key is no word.
func location(path []step) string {
	var b strings.Builder
	b.WriteString(root)
	for _, s := range path {
		switch {
		case s.inArray:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case isWord(s.key):
			b.WriteString("." + s.key)
		default:
			b.WriteString("[" + strconv.Quote(s.key) + "]")
		}
	}
	return b.String()
}

// Pointer turns a [Fault]'s path into a JSON Pointer (RFC 6901) to the same place: arguments.options.tags[2] is
// /options/tags/2.
func Pointer(path string) string {
	rest, pointer := strings.TrimPrefix(path, root), ""
	for rest != "" {
		var key string
		switch {
		case strings.HasPrefix(rest, `["`):
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil {
				return pointer
			}
			if key, err = strconv.Unquote(quoted); err != nil {
				return pointer
			}
			rest = strings.TrimPrefix(rest[1+len(quoted):], "]")
		case rest[0] == '[':
			key, rest, _ = strings.Cut(rest[1:], "]")
		default:
			rest = strings.TrimPrefix(rest, ".")
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return pointer
			}
			key, rest = rest[:end], rest[end:]
		}
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	}
	return pointer
}

func isWord(s string) bool {
	for i := range len(s) {
		b := s[i]
		if b != '_' && b != '-' && b != '$' && (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') {
			return false
		}
	}
	return s != ""
}

// steps turns a validator's location into a path in v: only v tells a key "2" from an index.
func steps(v any, tokens []string) []step {
	path := make([]step, 0, len(tokens))
	for _, t := range tokens {
		switch at := v.(type) {
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(at) {
				return path
			}
			path, v = append(path, step{index: i, inArray: true}), at[i]
		case map[string]any:
			path, v = append(path, step{key: t}), at[t]
		default:
			return path
		}
	}
	return path
}
