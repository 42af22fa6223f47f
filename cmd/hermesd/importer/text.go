package importer

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hermesd/hermesd/internal/redact"
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

// input is a value that VS Code asks its user for.
type input struct {
	preset string
	secret bool
}

func (im *importing) readInputs(root value) {
	inputs, _ := root.get("inputs")
	for _, v := range inputs.items {
		id, _ := v.get("id")
		password, _ := v.get("password")
		preset, _ := v.get("default")
		im.inputs[id.text] = input{preset.text, password.isTrue()}
	}
}

// reference is a placeholder in other programs' files: ${env:NAME}, ${NAME}, ${NAME:-default}, ${input:id}, ${userHome}.
var reference = regexp.MustCompile(`\$\{([^${}]*)\}`)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand reads a text of a file: references become expressions. secret says that all of it is one, by its place; prefix
// is what stays readable before a secret ("Bearer ").
func (im *importing) expand(key, s string, secret bool, name, prefix string) text {
	if !reference.MatchString(s) {
		if rest, ok := strings.CutPrefix(s, prefix); ok && secret && rest != "" {
			return append(literal(prefix), part{expression: secretExpression(im.needs(name, rest))})
		}
		return literal(im.homed(s))
	}
	var t text
	last := 0
	for _, m := range reference.FindAllStringSubmatchIndex(s, -1) {
		if m[0] > last {
			t = append(t, part{literal: s[last:m[0]]})
		}
		t = append(t, im.refer(key, s[m[2]:m[3]], s[m[0]:m[1]], secret))
		last = m[1]
	}
	if last < len(s) {
		t = append(t, part{literal: s[last:]})
	}
	return t
}

// refer is what one placeholder becomes.
func (im *importing) refer(key, inner, whole string, secret bool) part {
	kind, name, qualified := strings.Cut(inner, ":")
	switch {
	case qualified && kind == "input":
		in, known := im.inputs[name]
		if !known {
			im.note(key, "%s is an input that the file does not describe; set the environment variable instead", whole)
		}
		env := envName(name)
		if known && !in.secret && in.preset != "" && !secret {
			im.note(key, "%s was asked for; here it is env(%q), or %q where that is not set", whole, env, in.preset)
			return part{expression: "env(" + quote(env) + ", " + quote(in.preset) + ")"}
		}
		return part{expression: secretExpression(im.needs(env, ""))}
	case qualified && kind == "env" && variable.MatchString(name):
		return im.variable(name, "", false, secret)
	case variable.MatchString(inner) && !predefined[inner]:
		return im.variable(inner, "", false, secret)
	case variable.MatchString(kind) && strings.HasPrefix(name, "-"): // ${NAME:-default}
		return im.variable(kind, name[1:], true, secret)
	}
	switch inner {
	case "userHome":
		if im.opts.Home != "" {
			return part{literal: im.opts.Home}
		}
	case "workspaceFolder":
		dir := filepath.Dir(im.path)
		if base := filepath.Base(dir); base == ".vscode" || base == ".cursor" {
			dir = filepath.Dir(dir)
		}
		im.note(key, "%s was taken to be %s", whole, dir)
		return part{literal: dir}
	case "/", "pathSeparator":
		return part{literal: string(filepath.Separator)}
	}
	im.note(key, "%s means nothing here: the block is switched off until you write what it stands for", whole)
	im.vague = true
	return part{literal: whole}
}

// predefined are names that mean something to editors and are no environment variables.
var predefined = map[string]bool{"userHome": true, "workspaceFolder": true, "pathSeparator": true, "workspaceFolderBasename": true, "cwd": true, "file": true}

// variable is a reference to an environment variable. A secret's is a secret.
func (im *importing) variable(name, fallback string, hasFallback, secret bool) part {
	switch {
	case hasFallback && fallback != "" || hasFallback && !secret && !redact.SecretName(name):
		return part{expression: "env(" + quote(name) + ", " + quote(fallback) + ")"}
	case secret || redact.SecretName(name):
		return part{expression: secretExpression(im.needs(name, ""))}
	default:
		return part{expression: "env(" + quote(im.needs(name, "")) + ")"}
	}
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
