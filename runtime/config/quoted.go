package config

import (
	"bytes"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/hermesd/hermesd/internal/redact"
)

// blank stands for each byte of a source line that findings do not show; the places of the others stay.
const blank = 0

var blanks = regexp.MustCompile(`\x00+`)

// shownFiles are files as findings may quote them. A file with a fault is not evaluated, so that nobody knows which of its
// values are secrets: those of keys that are named like one, or like one that is misspelt, are hidden. Other unknown keys are
// a plugin's own.
func shownFiles(files map[string]*hcl.File) map[string]*hcl.File {
	known := map[string]bool{}
	knownKeys(reflect.TypeFor[Config](), known)
	out := make(map[string]*hcl.File, len(files))
	for name, f := range files {
		shown := *f
		q := quoter{src: f.Bytes, out: bytes.Clone(f.Bytes), known: known, names: slices.Sorted(maps.Keys(known))}
		q.run()
		shown.Bytes = q.out
		out[name] = &shown
	}
	return out
}

// knownKeys adds the keys and blocks of a block, and of those in it: whether each may hold a secret.
func knownKeys(t reflect.Type, known map[string]bool) {
	for _, f := range fieldsOf(t) {
		if f.name != "" {
			known[f.name] = known[f.name] || f.secret || f.typ.Kind() == reflect.String && redact.SecretName(f.name)
		}
		if inner := f.block(); inner != nil {
			knownKeys(inner, known)
		}
	}
}

// quoter walks over a source text, right or wrong, in native or JSON syntax, and blanks the values of some keys.
type quoter struct {
	src, out []byte
	at       int
	known    map[string]bool
	names    []string // the known ones

	hidden bool   // the texts that follow are
	all    bool   // and so are numbers
	depth  int    // of brackets within the value
	open   bool   // a key was the last thing
	before string // the word before this one, if nothing but spaces is between
}

var (
	wordAt    = regexp.MustCompile(`^[\pL_][\pL\pN_.-]*`)
	numberAt  = regexp.MustCompile(`^[0-9][\w.]*`)
	keyFollow = regexp.MustCompile(`^[ \t]*(?:=(?:[^=]|$)|:)`)
	heredocAt = regexp.MustCompile(`^<<-?([\pL_][\pL\pN_-]*)[ \t\r]*\n`)

	passwordAt  = regexp.MustCompile(`://[^/?#]*:[^/?#]*@`)
	parameterAt = regexp.MustCompile(`[?&]([^=&#]+)=`)

	called = []string{"secret(", "env(", "file(", "path("}
)

func (q *quoter) run() {
	for q.at < len(q.src) {
		rest := q.src[q.at:]
		c := rest[0]
		switch {
		case c == '"':
			q.text(q.at, stringEnd(q.src, q.at))
		case c == '<' && heredocAt.Match(rest):
			q.heredoc(heredocAt.FindSubmatch(rest))
		case c == '#' || bytes.HasPrefix(rest, []byte("//")):
			q.at += len(line(rest))
			q.before = ""
		case wordAt.Match(rest):
			q.word(string(wordAt.Find(rest)))
		case numberAt.Match(rest):
			end := q.at + len(numberAt.Find(rest))
			if q.all {
				q.hide(q.at, end)
			}
			q.at, q.open = end, false
		default:
			q.sign(c)
		}
	}
}

// sign is what is no word and no text.
func (q *quoter) sign(c byte) {
	switch c {
	case '[', '(':
		q.depth++
	case ']', ')':
		q.depth = max(0, q.depth-1)
	case '}':
		q.hidden, q.depth = false, 0
	case '\n':
		if q.depth == 0 && !q.open {
			q.hidden = false
		}
	}
	switch c {
	case ' ', '\t', '\r', '\n', '=', ':':
	case '(':
		q.before, q.open = q.before+"(", false
		q.at++
		return
	default:
		q.open = false
	}
	if c != ' ' && c != '\t' {
		q.before = ""
	}
	q.at++
}

// text is a literal: a key, a label, the argument of a function that names a source, or a value.
func (q *quoter) text(from, end int) {
	q.at = end
	switch {
	case keyFollow.Match(q.src[end:]):
		q.key(strings.Trim(string(q.src[from:end]), `"`))
	case slices.Contains(called, q.before):
	default:
		if redact.SecretName(q.before) { // its sign is missing
			q.hidden, q.all = true, true
		}
		inner := end
		if end-from > 1 && q.src[end-1] == '"' {
			inner--
		}
		if keyedAddress(string(q.src[from+1 : inner])) {
			q.blank(from+1, inner)
		}
		q.hide(from+1, inner)
	}
	q.before = ""
}

// keyedAddress says that a text is an address with a password or a token in it.
func keyedAddress(text string) bool {
	if passwordAt.MatchString(text) {
		return true
	}
	for _, name := range parameterAt.FindAllStringSubmatch(text, -1) {
		if redact.SecretName(name[1]) {
			return true
		}
	}
	return false
}

func (q *quoter) word(word string) {
	from := q.at
	q.at += len(word)
	rest := q.src[q.at:]
	switch {
	case keyFollow.Match(rest):
		q.key(word)
	case len(rest) > 0 && rest[0] == '(', word == "true", word == "false", word == "null":
		q.open = false
	default:
		q.hide(from, q.at)
	}
	q.before = word
}

func (q *quoter) key(name string) {
	secret, known := q.known[name]
	if !known {
		secret = redact.SecretName(name) || q.known[nearest(name, q.names)]
	}
	q.hidden, q.all, q.depth, q.open = secret, secret, 0, true
}

func (q *quoter) heredoc(marker [][]byte) {
	from := q.at + len(marker[0])
	q.at = from
	for q.at < len(q.src) {
		l := line(q.src[q.at:])
		if string(bytes.TrimSpace(l)) == string(marker[1]) {
			break
		}
		q.hide(q.at, q.at+len(l))
		q.at = min(len(q.src), q.at+len(l)+1)
	}
	q.hidden = false
	q.at = min(len(q.src), q.at+len(line(q.src[q.at:])))
	q.before = ""
}

// hide blanks a part of a line if it belongs to a hidden value.
func (q *quoter) hide(from, end int) {
	q.open = false
	if q.hidden {
		q.blank(from, end)
	}
}

func (q *quoter) blank(from, end int) {
	for i := from; i < end; i++ {
		if q.src[i] != '\n' {
			q.out[i] = blank
		}
	}
}

// line is a text up to the end of its first line.
func line(text []byte) []byte {
	l, _, _ := bytes.Cut(text, []byte("\n"))
	return l
}

// stringEnd is where the text that begins with a quote ends, behind its own quote or before the end of the line. Quotes
// within templates are not its end.
func stringEnd(src []byte, from int) int {
	depth := 0
	inner := false // in a text within a template
	for i := from + 1; i < len(src); i++ {
		switch c := src[i]; {
		case c == '\n':
			return i
		case c == '\\':
			i++
		case c == '"' && depth == 0:
			return i + 1
		case c == '"':
			inner = !inner
		case (c == '$' || c == '%') && i+1 < len(src) && src[i+1] == '{':
			depth, i = depth+1, i+1
		case c == '{' && depth > 0 && !inner:
			depth++
		case c == '}' && depth > 0 && !inner:
			depth--
		}
	}
	return len(src)
}
