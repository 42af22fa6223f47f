package importer

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// process reads command and args, and returns their words.
func (im *importing) process(v, command value) []string {
	words, _ := command.texts()
	if len(words) == 1 {
		words[0] = strings.TrimSpace(words[0])
		if strings.Contains(words[0], " ") && !strings.ContainsAny(words[0], `/\`) {
			im.note("command", "it was split at its spaces, as a shell would")
			words = strings.Fields(words[0])
		}
	}
	if args, ok := v.get("args"); ok {
		list, ok := args.texts()
		if !ok && args.kind != null {
			im.off("args", "it is no list of texts: write the arguments into command")
		}
		words = append(words, list...)
	}
	if len(words) > 0 {
		im.block.Command = im.line(words)
	}
	return words
}

// kinds of programs that matter here.
var (
	shells = []string{"sh", "bash", "zsh", "dash"}
	// loginOptions take user:password; keyOptions are short for a key or a password.
	loginOptions = []string{"auth", "basic-auth", "user", "u", "login", "proxy-user"}
	keyOptions   = []string{"k", "p"}
)

// line reads the words of a command.
func (im *importing) line(words []string) []text {
	program := filepath.Base(words[0])
	remote := slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(filepath.Base(w), "mcp-remote") })
	line := []text{im.expand("command", words[0], false, "", "")}
	option, running := "", !slices.Contains(runners, program)
	for i, w := range words[1:] {
		if im.tooMany() {
			break
		}
		// A shell reads its variables itself, and mcp-remote those in its headers.
		im.ownStay = slices.Contains(shells, program) && isScript(option) || remote && option == "header"
		line = append(line, im.argument(i+1, option, w))
		im.ownStay = false
		bare := strings.TrimLeft(w, "-")
		running = running || bare == w && option == ""
		if option = ""; bare != w && !strings.ContainsAny(w, "= ") && (running || !slices.Contains(keyOptions, bare)) {
			option = bare // of the next word, if it takes one
		}
	}
	return line
}

func isScript(option string) bool {
	return strings.HasSuffix(option, "c") && len(option) <= 3 // -c, -lc, -ilc
}

// argument reads one word of a command line; option is the one that may be its owner.
func (im *importing) argument(i int, option, w string) text {
	if name, value, ok := strings.Cut(w, "="); strings.HasPrefix(w, "-") && !strings.ContainsAny(name, " \n") {
		if bare := strings.TrimLeft(name, "-"); ok && len(bare) > 1 && bare[0] == 'e' && name[1] != '-' && variable.MatchString(bare[1:]) { // -eNAME=value
			return append(literal("-e"), im.assignment(i, w[2:])...).joined()
		} else if ok {
			return append(literal(name+"="), im.optionValue(i, bare, value)...).joined()
		}
		if len(w) > 3 && slices.Contains(keyOptions, w[1:2]) && attachedKey.MatchString(w[2:]) && !figure.MatchString(w[2:]) { // -pPASSWORD
			return append(literal(w[:2]), im.expand("args", w[2:], true, envName(im.label, w[1:2]), "")...)
		}
		option = ""
	}
	return im.optionValue(i, option, w)
}

// attachedKey is what stands behind a short option without a blank, and is neither a path nor more letters of options.
var attachedKey = regexp.MustCompile(`^[^/.~-].*[^a-zA-Z-]`)

// optionValue reads what an option takes.
func (im *importing) optionValue(i int, option, w string) text {
	name := envName(im.label, option)
	if fields := fieldsOfScript(w); isScript(option) && len(fields) > 1 {
		return im.script(i, fields)
	}
	switch user, password, login := strings.Cut(w, ":"); {
	case option == "":
		return im.word(i, w)
	case strings.EqualFold(option, "header") || option == "H":
		return im.headerLine(w)
	case assignments.MatchString(w) && (option == "e" || option == "env"):
		return im.assignment(i, w)
	case absolute.MatchString(w):
		return im.address("args", w)
	case slices.Contains(loginOptions, option) && login && user != "" && !figure.MatchString(password):
		return im.expand("args", w, true, name, "")
	case slices.Contains(keyOptions, option):
		certain := !flagWord.MatchString(w) && !figure.MatchString(w) && !rooted.MatchString(w)
		return im.expand("args", w, certain || secretText(w), name, "")
	case secretName(option) && secretValue(option, w):
		return im.expand("args", w, true, name, scheme(w))
	}
	return im.word(i, w)
}

// assignments are words such as NAME=value, with a name that a variable can have.
var assignments = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// word reads a word that no option claims.
func (im *importing) word(i int, w string) text {
	position := envName(im.label, "ARG", strconv.Itoa(i))
	header, value, isHeader := strings.Cut(w, ":")
	switch {
	case absolute.MatchString(w):
		return im.address("args", w)
	case isHeader && headerName.MatchString(header) && secretName(header) && strings.TrimSpace(value) != "":
		return im.headerLine(w)
	case assignments.MatchString(w):
		return im.assignment(i, w)
	case strings.HasPrefix(w, "{"), strings.HasPrefix(w, "["): // JSON
		return im.expand("args", w, secretText(w), position, "")
	}
	if fields := fieldsOfScript(w); len(fields) > 1 {
		return im.script(i, fields)
	}
	return im.expand("args", w, secretText(w), position, "")
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// assignment reads NAME=value.
func (im *importing) assignment(i int, w string) text {
	name, value, _ := strings.Cut(w, "=")
	env, secret := name, secretValue(name, value)
	if strings.ToUpper(name) != name { // no variable's: a setting of some kind
		env, secret = envName(im.label, name), secretName(name) && secret || secretText(value)
	}
	return im.expand("args", w, secret && value != "", env, name+"=")
}

// headerLine reads "Name: value".
func (im *importing) headerLine(w string) text {
	name, value, _ := strings.Cut(w, ":")
	bare := strings.TrimLeft(value, " ")
	before := w[:len(w)-len(bare)]
	if reference.MatchString(name) {
		return im.expand("args", w, false, "", "")
	}
	return append(literal(before), im.header("args", name, bare)...).joined()
}

// header reads a header's value.
func (im *importing) header(key, name, value string) text {
	before := scheme(value)
	return im.expand(key, value, before != "" || secretValue(name, value), envName(im.label, name), before)
}

// scheme is the word before a header's secret, with its space.
func scheme(value string) string {
	word, rest, ok := strings.Cut(value, " ")
	switch strings.ToLower(word) {
	case "bearer", "basic", "token", "apikey", "api-key", "digest":
		if ok && strings.TrimSpace(rest) != "" {
			return value[:len(value)-len(strings.TrimLeft(rest, " "))]
		}
	}
	return ""
}

// scriptField is a word of a script, with its quotes, or what stands between two.
var scriptField = regexp.MustCompile(`(?:[^\s"'$]|\$\{[^{}]*\}|\$|"[^"]*"|'[^']*')+|\s+|["']`)

// fieldsOfScript are a text's words and what stands between them.
func fieldsOfScript(w string) []string {
	if !strings.ContainsAny(w, " \t\n") {
		return nil
	}
	return scriptField.FindAllString(w, -1)
}

// script reads the words of a text one by one, as a command line's.
func (im *importing) script(i int, fields []string) text {
	var t text
	option := ""
	for _, f := range fields {
		if strings.TrimSpace(f) == "" {
			t = append(t, literal(f)...)
			continue
		}
		t = append(t, im.argument(i, option, f)...)
		option = ""
		if bare := strings.TrimLeft(f, "-"); bare != f && !strings.Contains(f, "=") {
			option = bare
		}
	}
	return t.joined()
}
