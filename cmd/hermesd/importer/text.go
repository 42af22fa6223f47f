package importer

import (
	"fmt"
	"path/filepath"
	"strings"
)

// text is a text of the configuration: literal parts, and expressions between them.
type text []part

type part struct {
	literal    string
	expression string // HCL; "" for a literal
}

func literal(s string) text {
	if s == "" {
		return nil
	}
	return text{{literal: s}}
}

// empty reports whether it is the empty text.
func (t text) empty() bool {
	for _, p := range t {
		if p.literal != "" || p.expression != "" {
			return false
		}
	}
	return true
}

// plain is a text that has literal parts only.
func (t text) plain() (s string, ok bool) {
	for _, p := range t {
		if p.expression != "" {
			return "", false
		}
		s += p.literal
	}
	return s, true
}

// joined has no two literal parts side by side.
func (t text) joined() text {
	var joined text
	for _, p := range t {
		if n := len(joined) - 1; n >= 0 && p.expression == "" && joined[n].expression == "" {
			joined[n].literal += p.literal
			continue
		}
		joined = append(joined, p)
	}
	return joined
}

// homed replaces a "~" at the beginning of a path, which no shell will expand here.
func (im *importing) homed(s string) string {
	if rest, ok := strings.CutPrefix(s, "~/"); ok && im.opts.Home != "" {
		return filepath.Join(im.opts.Home, rest)
	}
	return s
}

func secretExpression(env string) string { return `secret(` + quote("env:"+env) + `)` }

// quote writes an HCL string.
func quote(s string) string { return `"` + escape(s) + `"` }

// escape is the inside of an HCL string.
func escape(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\\' || r == '"':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case (r == '$' || r == '%') && strings.HasPrefix(s[i+1:], "{"):
			b.WriteRune(r)
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hcl writes a text as an expression.
func (t text) hcl() string {
	if len(t) == 1 && t[0].expression != "" {
		return t[0].expression
	}
	var b strings.Builder
	b.WriteByte('"')
	for i, p := range t {
		if p.expression != "" {
			b.WriteString("${" + p.expression + "}")
			continue
		}
		// A "$" right before an expression would escape it.
		if n := len(p.literal) - 1; i+1 < len(t) && n >= 0 && (p.literal[n] == '$' || p.literal[n] == '%') {
			b.WriteString(escape(p.literal[:n]) + `${"` + p.literal[n:] + `"}`)
			continue
		}
		b.WriteString(escape(p.literal))
	}
	b.WriteByte('"')
	return b.String()
}
