package floor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/runtime/tool"
)

// The bounds of what is looked at; the schema's and the front ends' bounds hold for the rest.
const (
	maxDepth = 32
	maxPath  = 4096     // PATH_MAX of Linux; a name may be longer as it is written
	maxURI   = 64 << 10 // a longer text is no file URI
)

// commandKeys are the arguments that a shell or an interpreter gets as its program.
var commandKeys = []string{"command", "cmd", "script", "code", "shell", "commands"}

// pathKeys are the arguments that are paths, however they look.
var pathKeys = []string{
	"path", "paths", "file", "files", "filename", "filepath", "file_path", "dir", "directory", "folder", "cwd", "root", "source", "src",
	"destination", "dest", "dst", "target", "from", "to", "old_path", "new_path", "output", "output_file", "uri", "pattern", "glob",
}

// check is one call being held against the floor.
type check struct {
	floor      *Floor
	definition *tool.Definition
	agent      string
	writes     bool // it may change what it names
	removes    bool // it may take away what is below what it names
	found      string
	bases      []string // worked out when first needed
	based      bool
	resolved   map[string]string
	seen       int // words of commands
}

// hurries reports whether so much has been looked at that the rest counts as it is written.
func (c *check) hurries() bool { return c.seen > maxWords }

// object looks at the members of an object that is the value of the argument of.
func (c *check) object(of string, o map[string]any, depth int) {
	for key, v := range o {
		if c.found != "" {
			return
		}
		if slices.Contains(pathKeys, of) || looksLikePath(key) { // files by their names: {"files": {"a/b": "content"}}
			c.path(key, c.removes)
		}
		if c.found == "" {
			c.value(strings.ToLower(key), v, depth)
		}
	}
}

func (c *check) value(key string, v any, depth int) {
	if depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case string:
		switch {
		case slices.Contains(commandKeys, key):
			c.command(v)
		case slices.Contains(pathKeys, key) || looksLikePath(v):
			c.path(v, c.removes)
		}
	case []any:
		if slices.Contains(commandKeys, key) { // an argument vector
			c.words(texts(v))
			return
		}
		for _, item := range v {
			c.value(key, item, depth+1)
		}
	case map[string]any:
		c.object(key, v, depth+1)
	}
}

func texts(list []any) []string {
	var out []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func looksLikePath(s string) bool {
	s = trim(s)
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") || len(s) <= maxURI && fileURI.MatchString(s)
}

// path looks at an argument that names a file.
func (c *check) path(s string, all bool) {
	if strings.ContainsAny(trim(s), "\x00\n") {
		return
	}
	for _, name := range spellings(s) {
		if c.candidates(name, c.starts(), all); c.found != "" {
			return
		}
	}
}

// candidates tries a path from every directory that it may start in.
func (c *check) candidates(s string, bases []string, all bool) {
	s = c.tilde(s)
	if filepath.IsAbs(s) {
		bases = []string{""}
	}
	for _, base := range bases {
		path := base + string(filepath.Separator) + s
		if c.try(path, all); c.found != "" {
			return
		}
		if strings.Contains(s, "..") && !c.hurries() { // what lies above a link is above its target, not above its name
			c.climb(path, all)
		}
	}
}

// climb tries a path with .. in it as the kernel walks it. The last part may not be there yet.
func (c *check) climb(path string, all bool) {
	if len(path) > maxPath {
		return
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		dir, last := filepath.Split(path)
		if real, err = filepath.EvalSymlinks(dir); err != nil {
			return
		}
		real = filepath.Join(real, last)
	}
	c.try(real, all)
}

func (c *check) try(path string, all bool) {
	if path = filepath.Clean(path); len(path) > maxPath {
		return
	}
	if !wild(path) {
		c.found = c.hit(c.resolve(path), all)
		return
	}
	before := literal(path)
	if before == "" {
		before = "/"
	}
	c.found = c.hitGlob(filepath.Join(c.resolve(before), path[len(literal(path)):]), all)
}

func (c *check) tilde(s string) string {
	if s == "~" || strings.HasPrefix(s, "~/") {
		return filepath.Join(c.floor.options.Home, s[1:])
	}
	return s
}

func (c *check) starts() []string {
	if !c.based && c.floor.options.Bases != nil {
		c.bases, c.based = c.floor.options.Bases(c.definition, c.agent), true
	}
	return c.bases
}

// maxResolved bounds what one call may have looked up.
const maxResolved = 10_000

// resolve is [resolve] for a call that names many paths: what was looked up is remembered.
func (c *check) resolve(path string) string {
	if c.hurries() {
		return path
	}
	if real, ok := c.resolved[path]; ok {
		return real
	}
	var real string
	if _, err := os.Lstat(path); err != nil && path != filepath.Dir(path) {
		real = filepath.Join(c.resolve(filepath.Dir(path)), filepath.Base(path))
	} else {
		real = resolve(path)
	}
	if c.resolved == nil {
		c.resolved = map[string]string{}
	}
	if len(c.resolved) < maxResolved {
		c.resolved[path] = real
	}
	return real
}

// resolve follows the symbolic links of a path as far as it exists. What cannot be followed stays as it is written.
func resolve(path string) string {
	path = filepath.Clean(path)
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		switch {
		case err == nil:
			return filepath.Join(real, rest)
		case at == filepath.Dir(at):
			return path
		}
		if target, err := os.Readlink(at); err == nil { // it leads to something that is not there yet
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(at), target)
			}
			if target != at && len(target) < maxPath && rest == "" {
				return resolveOnce(target)
			}
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// resolveOnce resolves the folder of a link's target; a chain of dangling links ends there.
func resolveOnce(path string) string {
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return filepath.Clean(path)
}
