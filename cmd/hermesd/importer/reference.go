package importer

import (
	"path/filepath"
	"regexp"
	"strings"
)

// input is a value that VS Code asks its user for.
type input struct {
	preset string
	secret bool
}

func (im *importing) readInputs(inputs value) {
	for _, v := range inputs.items {
		id, _ := v.get("id")
		password, _ := v.get("password")
		preset, _ := v.get("default")
		im.inputs[id.text] = input{preset.text, password.isTrue()}
	}
}

// reference is a placeholder in other programs' files: ${env:NAME}, ${NAME}, ${NAME:-default}, ${input:id}, ${userHome}.
var reference = regexp.MustCompile(`\$\{([^${}]*)\}`)

// findAmbient notes the environment variables that servers refer to. What a server is given as env is not among them, unless
// another one is given it by the same name.
func (im *importing) findAmbient(servers value) {
	for _, m := range servers.members {
		own, _ := m.value.get("env")
		given := map[string]bool{}
		for _, e := range own.members {
			given[e.name] = true
		}
		m.value.walk(func(s string) {
			for _, found := range reference.FindAllStringSubmatch(s, -1) {
				kind, rest, _ := strings.Cut(found[1], ":")
				name := kind
				switch kind {
				case "env":
					name = rest
				case "input":
					name = envName(rest)
				}
				if variable.MatchString(name) && !given[name] {
					im.ambient[name] = true
				}
			}
		})
		for _, e := range own.members { // which may well be given by its own name: env = { TOKEN = "${TOKEN}" }
			for _, found := range reference.FindAllStringSubmatch(e.value.text, -1) {
				name, _, _ := strings.Cut(strings.TrimPrefix(found[1], "env:"), ":")
				im.ambient[name] = true
			}
		}
	}
}

// secretOwn are the variables of a server that its arguments and headers use as secrets, whatever their names.
func secretOwn(v value) map[string]bool {
	found := map[string]bool{}
	use := func(name, s string) {
		last := 0
		for _, m := range reference.FindAllStringSubmatchIndex(s, -1) {
			named := namedBefore.FindStringSubmatch(s[last:m[0]])
			last = m[1]
			if secretName(name) || named != nil && secretName(named[1]) {
				found[strings.TrimPrefix(s[m[2]:m[3]], "env:")] = true
			}
		}
	}
	headers, _ := v.get("headers")
	for _, m := range headers.members {
		use(m.name, m.value.text)
	}
	args, _ := v.get("args")
	option := ""
	for _, s := range textsOf(args) {
		use(option, s)
		option = ""
		if strings.HasPrefix(s, "-") {
			option = s
		}
	}
	return found
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand reads a text of a file: references become expressions. secret says that all of it is one, by its place; name is
// the variable's that it goes to, and prefix is what stays readable before it ("Bearer ").
func (im *importing) expand(key, s string, secret bool, name, prefix string) text {
	if !reference.MatchString(s) {
		if rest, ok := strings.CutPrefix(s, prefix); ok && secret && rest != "" {
			return append(literal(prefix), im.secret(key, name, rest))
		}
		return literal(im.homed(s))
	}
	var t text
	between := func(piece string) {
		if secretText(piece) {
			t = append(t, im.secret(key, name, piece))
		} else {
			t = append(t, literal(piece)...)
		}
	}
	last := 0
	for _, m := range reference.FindAllStringSubmatchIndex(s, -1) {
		before := s[last:m[0]]
		between(before)
		named := namedBefore.FindStringSubmatch(before)
		t = append(t, im.refer(key, s[m[2]:m[3]], s[m[0]:m[1]], secret || named != nil && secretName(named[1]))...)
		last = m[1]
	}
	between(s[last:])
	return t.joined()
}

// namedBefore is the name of the value that follows a text, as in "token=" and "Authorization: Bearer ".
var namedBefore = regexp.MustCompile(`([A-Za-z0-9_.-]+)["']?\s*[=:]\s*["']?([A-Za-z]+ )?$`)

// refer is what one placeholder becomes.
func (im *importing) refer(key, inner, whole string, secret bool) text {
	kind, name, qualified := strings.Cut(inner, ":")
	if own, ok := im.own[strings.TrimPrefix(inner, "env:")]; ok && !strings.HasPrefix(key, "env.") {
		if im.ownStay && kind != "env" {
			return literal(whole)
		}
		return own
	}
	switch {
	case qualified && kind == "input":
		return text{im.inputValue(key, name, whole, secret)}
	case qualified && kind == "env" && variable.MatchString(name):
		return text{im.variable(name, secret)}
	case variable.MatchString(inner) && !predefined[inner]:
		return text{im.variable(inner, secret)}
	case variable.MatchString(kind) && strings.HasPrefix(name, "-"): // ${NAME:-default}
		return im.withDefault(key, kind, name[1:], secret)
	}
	switch inner {
	case "userHome":
		if im.opts.Home != "" {
			return literal(im.opts.Home)
		}
	case "workspaceFolder":
		dir := im.folder()
		if dir == "" {
			dir = filepath.Dir(im.section.path)
		}
		im.note(key, "%s was taken to be %s", whole, dir)
		return literal(dir)
	case "/", "pathSeparator":
		return literal(string(filepath.Separator))
	}
	im.off(key, "%s means nothing here: write what it stands for", whole)
	return literal(whole)
}

// inputValue is what VS Code asks its user for.
func (im *importing) inputValue(key, id, whole string, secret bool) part {
	in, known := im.inputs[id]
	if !known {
		im.note(key, "%s is an input that the file does not describe; set the environment variable instead", whole)
	}
	env := envName(id)
	if known && !in.secret && in.preset != "" && !secret && !secretText(in.preset) {
		im.note(key, "%s was asked for; here it is env(%q), or %q where that is not set", whole, env, in.preset)
		return part{expression: "env(" + quote(env) + ", " + quote(in.preset) + ")"}
	}
	return part{expression: secretExpression(im.needs(env))}
}

// predefined are names that mean something to editors and are no environment variables.
var predefined = map[string]bool{"userHome": true, "workspaceFolder": true, "pathSeparator": true, "workspaceFolderBasename": true, "cwd": true, "file": true}

// variable is a reference to an environment variable. A secret's is a secret.
func (im *importing) variable(name string, secret bool) part {
	if secret || secretName(name) && !harmlessNames.MatchString(name) {
		return part{expression: secretExpression(im.needs(name))}
	}
	return part{expression: "env(" + quote(im.needs(name)) + ")"}
}

// withDefault is a reference with what counts where the variable is not set. A default that is a secret becomes one.
func (im *importing) withDefault(key, name, fallback string, secret bool) text {
	secret = secret || secretName(name) && !harmlessNames.MatchString(name)
	switch {
	case fallback == "" && secret:
		return text{im.variable(name, true)}
	case fallback != "" && (secret && !harmless(name, fallback) || secretText(fallback)):
		return text{{expression: "try(" + secretExpression(name) + ", " + im.secret(key, envName(im.label, name), fallback).expression + ")"}}
	}
	return text{{expression: "env(" + quote(name) + ", " + quote(fallback) + ")"}}
}
