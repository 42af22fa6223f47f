package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// one imports one server.
func (im *importing) one(name string, v value) {
	im.server = name
	if v.kind != object {
		im.note("", "left out: it is no object but %s", v.kind)
		return
	}
	if reason := v.excess(); reason != "" {
		im.note("", "left out: %s", reason)
		return
	}
	im.label = im.labelFor(name)
	s := &Server{Name: im.label, file: im.section.path, title: name}
	im.block, im.own = s, nil
	env, _ := v.get("env")
	used := secretOwn(v)
	s.Env = im.pairs("env", env, func(name, value string) text {
		return im.expand("env."+name, value, used[name] || secretValue(name, value), name, "")
	})
	im.own = map[string]text{}
	for _, p := range s.Env {
		im.own[p.name] = p.value
	}
	words := im.target(v)
	for _, m := range v.members {
		im.member(m.name, m.value)
	}
	if len(s.Command) > 0 {
		im.place(words)
		im.noteKept()
	}
	im.result.Servers = append(im.result.Servers, *s)
}

// excess is what a server has too much of.
func (v value) excess() (reason string) {
	v.walk(func(s string) {
		if len(s) > maxText {
			reason = fmt.Sprintf("a text of it has more than %d bytes", maxText)
		}
	})
	if v.size() > maxValues {
		reason = fmt.Sprintf("it has more than %d values", maxValues)
	}
	return reason
}

// target reads what is started or connected to. A block with both, or neither, is for check to refuse, unless its type says
// which one counts. It returns the words of a command.
func (im *importing) target(v value) (words []string) {
	command, isProcess := firstOf(v, "command")
	address, isRemote := firstOf(v, "url", "serverUrl", "httpUrl")
	transport, _ := firstOf(v, "type", "transport")
	if isProcess && isRemote && transport.text != "" {
		isProcess = strings.EqualFold(transport.text, "stdio")
		isRemote = !isProcess
		im.note("type", "of command and url, the one for %q counts", transport.text)
	}
	if isProcess {
		words = im.process(v, command)
	}
	if isRemote {
		im.block.URL = im.address("url", lowerScheme(strings.TrimSpace(address.text)))
	}
	return words
}

var upperScheme = regexp.MustCompile(`(?i)^https?://`)

// lowerScheme writes https:// for HTTPS://.
func lowerScheme(address string) string {
	return upperScheme.ReplaceAllStringFunc(address, strings.ToLower)
}

func firstOf(v value, names ...string) (value, bool) {
	for _, name := range names {
		if found, ok := v.get(name); ok && found.kind != null {
			return found, true
		}
	}
	return value{}, false
}

// transports are those that hermesd speaks, as files name them.
var transports = []string{"", "stdio", "http", "sse", "streamable-http", "streamablehttp", "streamable_http", "local", "remote"}

// member reads everything else that a server has.
func (im *importing) member(key string, v value) {
	s := im.block
	switch key {
	case "command", "args", "url", "serverUrl", "httpUrl", "env":
	case "type", "transport":
		if !slices.Contains(transports, strings.ToLower(v.text)) {
			im.off(key, "transport %q is unknown here", v.text)
		}
	case "headers":
		s.Headers = im.pairs(key, v, func(name, value string) text { return im.header(key+"."+name, name, value) })
	case "cwd", "working_directory":
		s.Cwd = im.expand(key, v.text, false, "", "")
	case "disabled", "enabled":
		on, ok := v.truth()
		if !ok && v.kind != null {
			im.off(key, "it is neither true nor false")
		}
		s.Disabled = s.Disabled || ok && on == (key == "disabled")
	case "description", "name", "icon", "gallery", "version", "note", "comment", "$schema", "//", "_comment":
	default:
		switch {
		case im.setting(key, v):
		case filterKey.MatchString(key):
			im.unreadable(key)
		default:
			im.note(key, "not carried over")
		}
	}
}

func (im *importing) pairs(key string, v value, read func(name, value string) text) []pair {
	var list []pair
	for _, m := range v.members {
		switch {
		case key == "env" && !variable.MatchString(m.name):
			name, _, _ := strings.Cut(m.name, "=") // what follows may be a secret in the wrong place
			im.note(key+"."+name, "left out: it is no name of an environment variable")
		case m.value.kind == object || m.value.kind == array:
			im.note(key+"."+m.name, "left out: it is %s instead of a text", m.value.kind)
		default:
			list = append(list, pair{m.name, read(m.name, m.value.text)})
		}
	}
	if v.kind != object && v.kind != null && v.kind != "" {
		im.note(key, "left out: it is %s instead of an object", v.kind)
	}
	return list
}

// keepers are servers that keep what they write beside their own program, by the variable that names another place.
var keepers = map[string]string{"server-memory": "MEMORY_FILE_PATH"}

// noteKept tells of a server that writes where isolation does not let it: a runner's caches are open to it, the folder of an
// installed program is not.
func (im *importing) noteKept() {
	for _, word := range im.block.Command {
		literal, _ := word.plain()
		for name, env := range keepers {
			if _, given := im.own[env]; given || !strings.Contains(literal, name) || isRunner(im.block.Command[0]) {
				continue
			}
			im.note("env", "it writes beside its own program, where isolation lets it read only: set %s to a file of yours, or allow_write to its folder", env)
			return
		}
	}
}
