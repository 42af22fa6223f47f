package importer

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/hermesd/hermesd/internal/redact"
)

// block imports one server.
func (im *importing) block(format Format, name string, v value) {
	im.server = name
	if v.kind != object {
		im.note("", "left out: it is no object but %s", v.kind)
		return
	}
	command, isProcess := v.get("command")
	address, isRemote := firstOf(v, "url", "serverUrl", "httpUrl")
	switch {
	case isProcess == isRemote:
		im.note("", "left out: a server has either a command or a url")
		return
	case isProcess && command.kind != str && command.kind != array, isRemote && address.kind != str:
		im.note("", "left out: its command or url is no text")
		return
	}
	im.label, im.vague = im.labelFor(name), false
	s := &Server{Name: im.label}
	if isProcess {
		im.process(s, v, command)
	} else {
		s.URL = im.address("url", address.text)
	}
	for _, m := range v.members {
		im.member(s, format, m.name, m.value)
	}
	s.Disabled = s.Disabled || im.vague
	im.result.Servers = append(im.result.Servers, *s)
}

func firstOf(v value, names ...string) (value, bool) {
	for _, name := range names {
		if found, ok := v.get(name); ok && found.kind != null {
			return found, true
		}
	}
	return value{}, false
}

// process reads command and args.
func (im *importing) process(s *Server, v, command value) {
	words, _ := command.texts()
	if len(words) == 1 && strings.Contains(words[0], " ") && !strings.ContainsAny(words[0], `/\`) {
		im.note("command", "%q was split at its spaces, as a shell would", words[0])
		words = strings.Fields(words[0])
	}
	if args, ok := v.get("args"); ok {
		list, ok := args.texts()
		if !ok {
			im.note("args", "left out: it is no list of texts")
		}
		words = append(words, list...)
	}
	flag := ""
	for i, w := range words {
		s.Command = append(s.Command, im.argument(i, w, flag))
		flag = ""
		if name := strings.TrimLeft(w, "-"); i > 0 && name != w && !strings.Contains(w, "=") && redact.SecretName(name) {
			flag = name // the next word is its value
		}
	}
}

// argument reads one word of a command line. flag is the flag that it is the value of, if that is a secret.
func (im *importing) argument(i int, w, flag string) text {
	const key = "args"
	if i == 0 {
		return im.expand("command", w, false, "", "")
	}
	if flag != "" && !strings.HasPrefix(w, "-") {
		return im.expand(key, w, true, envName(im.label, flag), "")
	}
	if name, value, ok := strings.Cut(w, "="); ok && strings.HasPrefix(w, "-") {
		if bare := strings.TrimLeft(name, "-"); redact.SecretName(bare) || secretValue(value) {
			return im.expand(key, w, true, envName(im.label, bare), name+"=")
		}
	}
	if name, value, ok := strings.Cut(w, ":"); ok && redact.SecretName(name) && strings.TrimSpace(value) != "" && !strings.Contains(name, "/") { // mcp-remote --header "Authorization: Bearer …"
		prefix := w[:len(w)-len(strings.TrimLeft(value, " "))]
		return im.expand(key, w, true, envName(im.label, name), prefix+scheme(strings.TrimLeft(value, " ")))
	}
	if strings.Contains(w, "://") {
		return im.address(key, w)
	}
	if name, value, ok := strings.Cut(w, "="); ok && variable.MatchString(name) && (redact.SecretName(name) || secretValue(value)) { // docker -e NAME=value
		return im.expand(key, w, true, name, name+"=")
	}
	return im.expand(key, w, secretValue(w), envName(im.label, "ARG", strconv.Itoa(i)), "")
}

// scheme is the word before a header's secret, with its space.
func scheme(value string) string {
	for _, word := range []string{"Bearer ", "bearer ", "Basic ", "Token ", "token "} {
		if strings.HasPrefix(value, word) {
			return word
		}
	}
	return ""
}

// address reads a URL. Passwords and secret parameters in it are taken out; a URL with a login is one secret as a whole.
func (im *importing) address(key, s string) text {
	if hasLogin(s) && !reference.MatchString(s) {
		return im.expand(key, s, true, envName(im.label, "URL"), "")
	}
	base, query, ok := strings.Cut(s, "?")
	if !ok {
		return im.expand(key, s, false, "", "")
	}
	t := im.expand(key, base, false, "", "")
	separator := "?"
	for _, parameter := range strings.Split(query, "&") {
		name, v, _ := strings.Cut(parameter, "=")
		plain, err := url.QueryUnescape(v)
		if err != nil {
			plain = v
		}
		t = append(t, part{literal: separator})
		t = append(t, im.expand(key, parameter, redact.SecretName(name) || secretValue(plain), envName(im.label, name), name+"=")...)
		separator = "&"
	}
	return t
}

// member reads everything else that a server has.
func (im *importing) member(s *Server, format Format, key string, v value) {
	switch key {
	case "command", "args", "url", "serverUrl", "httpUrl":
	case "type", "transport":
		switch strings.ToLower(v.text) {
		case "stdio", "http", "sse", "streamable-http", "streamablehttp", "streamable_http", "local", "remote", "":
		default:
			im.note(key, "transport %q is unknown here; the block is switched off", v.text)
			s.Disabled = true
		}
	case "env":
		s.Env = im.pairs(key, v, func(name, value string) text {
			return im.expand(key+"."+name, value, redact.SecretName(name) && value != "" || secretValue(value), name, "")
		})
	case "headers":
		s.Headers = im.pairs(key, v, func(name, value string) text {
			secret := redact.SecretName(name) || secretValue(value) || scheme(value) != ""
			return im.expand(key+"."+name, value, secret, envName(im.label, name), scheme(value))
		})
	case "cwd", "working_directory":
		s.Cwd = im.expand(key, v.text, false, "", "")
	case "disabled":
		s.Disabled = s.Disabled || v.isTrue()
	case "enabled":
		s.Disabled = s.Disabled || !v.isTrue()
	case "description", "name", "icon", "gallery", "version", "note", "comment", "$schema", "//", "_comment":
	default:
		if !im.setting(s, format, key, v) {
			im.note(key, "not carried over")
		}
	}
}

func (im *importing) pairs(key string, v value, read func(name, value string) text) []pair {
	var list []pair
	for _, m := range v.members {
		if key == "env" && !variable.MatchString(m.name) {
			im.note(key+"."+m.name, "left out: it is no name of an environment variable")
			continue
		}
		if m.value.kind == object || m.value.kind == array {
			im.note(key+"."+m.name, "left out: it is %s instead of a text", m.value.kind)
			continue
		}
		list = append(list, pair{m.name, read(m.name, m.value.text)})
	}
	if v.kind != object && v.kind != null {
		im.note(key, "left out: it is %s instead of an object", v.kind)
	}
	return list
}
