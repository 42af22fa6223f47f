package main

import (
	"regexp"
	"strings"

	"github.com/hermesd/hermesd/pluginsdk"
)

// glob matches names or whole paths. nil matches everything.
type glob struct {
	re   *regexp.Regexp
	path bool // the pattern has a slash: it speaks of the whole path
}

// compileGlob reads a pattern: * and ? do not cross a slash, ** does, [a-z] and {a,b} are as in shells. A pattern without
// a slash is matched against the name alone. The empty pattern matches everything.
func compileGlob(pattern string) (*glob, error) {
	if pattern == "" {
		return nil, nil
	}
	re, err := regexp.Compile("^(?:" + globExpression(strings.TrimPrefix(pattern, "./")) + ")$")
	if err != nil {
		return nil, pluginsdk.InvalidArgument("/glob", "%q is no glob pattern", pattern)
	}
	return &glob{re: re, path: strings.Contains(pattern, "/")}, nil
}

// globExpression writes a glob pattern as a regular expression.
func globExpression(pattern string) string {
	var b strings.Builder
	braces := 0
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch c := pattern[i]; {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(rest, "**"):
			b.WriteString(".*")
			i++
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '[' && strings.IndexByte(rest[1:], ']') > 0:
			end := 1 + strings.IndexByte(rest[1:], ']')
			set := rest[1:end]
			b.WriteByte('[')
			if set[0] == '!' || set[0] == '^' {
				b.WriteByte('^')
				set = set[1:]
			}
			b.WriteString(strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`, `&`, `\&`).Replace(set))
			b.WriteByte(']')
			i += end
		case c == '{':
			b.WriteString("(?:")
			braces++
		case c == '}' && braces > 0:
			b.WriteByte(')')
			braces--
		case c == ',' && braces > 0:
			b.WriteByte('|')
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	return b.String()
}

func (g *glob) matches(path, name string) bool {
	switch {
	case g == nil:
		return true
	case g.path:
		return g.re.MatchString(path)
	default:
		return g.re.MatchString(name)
	}
}
