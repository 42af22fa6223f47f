package floor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The bounds of one command.
const (
	maxWords = 2000
	maxBases = 16
)

// destroyers are programs that take away, or open to others, what is below what they name.
var destroyers = []string{"rm", "mv", "rmdir", "unlink", "shred", "chmod", "chown", "setfacl", "truncate", "rsync", "find", "tar", "git"}

// command looks at the words of a shell command.
func (c *check) command(line string) { c.words(split(line)) }

// words looks at each word of a command as a path from every directory that the command may be in: where it starts, and
// every directory that it names, since it may change into it.
func (c *check) words(words []string) {
	c.writes = true // what a command does with a path cannot be told from outside
	all := slices.ContainsFunc(words, func(w string) bool { return slices.Contains(destroyers, filepath.Base(w)) })
	bases := slices.Clone(c.starts())
	seen := map[string]bool{}
	for _, word := range words[:min(len(words), maxWords)] {
		for _, part := range parts(c.expand(word)) {
			if part == "" || len(part) > maxPath || seen[part] {
				continue
			}
			seen[part] = true
			c.candidates(part, bases, all)
			if c.found != "" {
				return
			}
			bases = c.enter(bases, part)
		}
	}
}

// enter adds the directories that a word may name.
func (c *check) enter(bases []string, word string) []string {
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
// --file=x, of=x and host:x.
func parts(word string) []string {
	word = dropBraces(word)
	list := []string{word}
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

// split parts a command into words, quotes taken off, at blanks and at the shell's operators.
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
			if line[i] != '\n' {
				word.WriteByte(line[i])
				started = true
			}
		case b == '\'' || b == '"':
			quote, started = b, true
		case strings.IndexByte(" \t\r\n;|&<>()`", b) >= 0:
			end()
		default:
			word.WriteByte(b)
			started = true
		}
	}
	end()
	// What a quoted word holds may be a command itself, as after sh -c.
	for _, w := range slices.Clone(words) {
		if strings.ContainsAny(w, " \t\n;|&<>()`") && len(words) < maxWords {
			words = append(words, split(strings.NewReplacer(`"`, " ", "'", " ").Replace(w))...)
		}
	}
	return words
}
