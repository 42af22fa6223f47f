package floor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The bounds of one command.
const (
	maxWords = 1000 // that are looked up on the disk; further ones count as they are written
	maxBases = 8
)

// destroyers are programs and options (of find) that take away, or open to others, what is below what they are told.
var destroyers = []string{"rm", "mv", "rmdir", "unlink", "shred", "chmod", "chown", "setfacl", "truncate", "-delete", "-exec", "-execdir"}

// separator stands between simple commands in a list of words; no word is it.
const separator = "\x00"

// command looks at the words of a shell command.
func (c *check) command(line string) { c.words(split(line)) }

// words looks at each word of a command as a path from every directory that the command may be in: where it starts, and
// every directory that it names, since it may change into it.
func (c *check) words(words []string) {
	c.writes = true // what a command does with a path cannot be told from outside
	bases := slices.Clone(c.starts())
	for rest := words; len(rest) > 0 && c.found == ""; {
		n := slices.Index(rest, separator)
		simple := rest
		if rest = nil; n >= 0 {
			simple, rest = simple[:n], simple[n+1:]
		}
		bases = c.simple(simple, bases)
	}
}

// simple looks at one simple command and returns the directories that the next one may be in.
func (c *check) simple(words, bases []string) []string {
	all := slices.ContainsFunc(words, func(w string) bool { return slices.Contains(destroyers, filepath.Base(w)) })
	for _, word := range words {
		c.seen++
		for _, part := range parts(c.expand(word)) {
			if part == "" || len(part) > maxPath {
				continue
			}
			if c.candidates(part, bases, all); c.found != "" {
				return bases
			}
			bases = c.enter(bases, part)
		}
	}
	return bases
}

// enter adds the directories that a word may name.
func (c *check) enter(bases []string, word string) []string {
	if c.hurries() {
		return bases
	}
	word = c.tilde(word)
	starts := bases
	if filepath.IsAbs(word) {
		starts = []string{""}
	}
	for _, base := range starts {
		dir := filepath.Join(base, word)
		if len(bases) >= maxBases || slices.Contains(bases, dir) {
			continue
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			bases = append(bases, dir)
		}
	}
	return bases
}

// expand replaces the variables that every shell has, and makes what else may expand a wildcard.
func (c *check) expand(word string) string {
	for _, name := range []string{"HOME", "PWD", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "STATE_DIRECTORY"} {
		value := os.Getenv(name)
		switch name {
		case "HOME":
			value = c.floor.options.Home
		case "PWD":
			value = "."
		}
		if value != "" {
			word = strings.ReplaceAll(strings.ReplaceAll(word, "${"+name+"}", value), "$"+name, value)
		}
	}
	return braces.Replace(word)
}

// braces makes an alternative a wildcard: {a,b} is something.
var braces = strings.NewReplacer("{", "*{")

// parts are the paths that a word may hold: the word itself and what follows an equals sign, a colon or a comma, as in
// --file=x, of=x and host:x, and what a file URI names.
func parts(word string) []string {
	word = dropBraces(word)
	list := spellings(word)
	for _, p := range strings.FieldsFunc(word, func(r rune) bool { return r == '=' || r == ':' || r == ',' || r == '@' }) {
		if p != word {
			list = append(list, p)
		}
	}
	return list
}

// dropBraces cuts out what stands between braces; expand has put wildcards around it.
func dropBraces(s string) string {
	for {
		open := strings.IndexByte(s, '{')
		if open < 0 {
			return s
		}
		end := strings.IndexByte(s[open:], '}')
		if end < 0 {
			return s
		}
		s = s[:open] + s[open+end+1:]
	}
}

// split parts a command into words, quotes taken off, with a separator where one simple command ends.
func split(line string) []string {
	var words []string
	var word strings.Builder
	started := false
	end := func() {
		if started {
			words = append(words, word.String())
		}
		word.Reset()
		started = false
	}
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		b := line[i]
		switch {
		case quote == '\'' && b != '\'' || quote == '"' && b != '"' && b != '\\':
			word.WriteByte(b)
		case quote == b && quote != 0:
			quote = 0
		case b == '\\' && i+1 < len(line):
			i++
			if quote != 0 && strings.IndexByte("$`\"\\\n", line[i]) < 0 { // between double quotes it escapes only these
				word.WriteByte(b)
			}
			if line[i] != '\n' {
				word.WriteByte(line[i])
				started = true
			}
		case b == '$' && quote == 0 && i+1 < len(line) && (line[i+1] == '\'' || line[i+1] == '"'):
			if m := ansi.FindStringSubmatch(line[i:]); m != nil {
				word.WriteString(unquoteANSI(m[1]))
				started = true
				i += len(m[0]) - 1
			}
		case b == '\'' || b == '"':
			quote, started = b, true
		case strings.IndexByte(" \t\r<>", b) >= 0:
			end()
		case strings.IndexByte("\n;|&()`\x00", b) >= 0:
			end()
			words = append(words, separator)
		default:
			word.WriteByte(b)
			started = true
		}
	}
	end()
	// What a quoted word holds may be a command itself, as after sh -c.
	for _, w := range slices.Clone(words) {
		if strings.ContainsAny(w, " \t\n;|&<>()`") {
			w = ansiAnywhere.ReplaceAllStringFunc(w, func(q string) string { return unquoteANSI(q[2 : len(q)-1]) })
			words = append(append(words, separator), split(strings.NewReplacer(`"`, " ", "'", " ").Replace(w))...)
		}
	}
	return words
}
