package importer

import (
	"fmt"
	"regexp"
	"strings"
)

// maxLabel is the longest label of a block, see the configuration's reference.
const maxLabel = 32

// labelFor makes a block's label of a server's name.
func (im *importing) labelFor(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	label := b.String()
	for _, c := range []string{"_", "-"} {
		for strings.Contains(label, c+c) {
			label = strings.ReplaceAll(label, c+c, c)
		}
	}
	if label = strings.Trim(label[:min(len(label), maxLabel)], "-_"); label == "" {
		label = "server"
	}
	free := label
	for n := 2; im.names[free]; n++ {
		suffix := fmt.Sprintf("-%d", n)
		free = label[:min(len(label), maxLabel-len(suffix))] + suffix
	}
	im.names[free] = true
	if free != name {
		im.note("", "named %q here; names have lower-case letters, digits, - and _, and are unique", free)
	}
	return free
}

// needs notes that the configuration reads a variable which the files took from the environment themselves.
func (im *importing) needs(name string) string {
	if _, known := im.vars[name]; !known {
		im.vars[name] = ""
		im.result.Variables = append(im.result.Variables, Variable{Env: name})
	}
	return name
}

// secret takes a value out of the configuration: into a variable of this name, or of another one if this means something
// else already.
func (im *importing) secret(key, name, value string) part {
	if im.tooMany() { // no name need be found
		return part{expression: secretExpression(name)}
	}
	free, own := name, name
	if !strings.HasPrefix(name, envName(im.label)+"_") {
		own = envName(im.label, name)
	}
	for n := 1; !im.free(free, value); n++ {
		if free = own; n > 1 {
			free = fmt.Sprintf("%s_%d", own, n)
		}
	}
	if _, known := im.vars[free]; !known {
		im.vars[free] = value
		im.result.Variables = append(im.result.Variables, Variable{free, value})
	}
	im.note(key, "is a secret here: it is read from the environment variable %s", free)
	return part{expression: secretExpression(free)}
}

// tooMany reports whether the import fails of its variables, so that nothing else matters any more.
func (im *importing) tooMany() bool { return len(im.result.Variables) > MaxVariables }

// ownVariables are variables that mean something to hermesd itself, or to the programs that it starts.
var ownVariables = regexp.MustCompile(`(?i)^(PATH|HOME|USER|LANG|LC_.*|TZ|TMPDIR|SHELL|LD_.*|DYLD_.*|HERMESD_.*|XDG_.*|SSL_.*|GO[A-Z]+|OTEL_.*|(HTTPS?|ALL|NO|FTP)_PROXY|CREDENTIALS_DIRECTORY|CONFIGURATION_DIRECTORY|INVOCATION_ID|NOTIFY_SOCKET|LISTEN_.*)$`)

// free reports whether a variable may hold a value: nobody else's, and not one that the environment has another value for.
func (im *importing) free(name, value string) bool {
	if held, known := im.vars[name]; known {
		return held == value
	}
	if im.ambient[name] || ownVariables.MatchString(name) {
		return false
	}
	present, ok := im.opts.lookup(name)
	return !ok || present == value
}

// envName makes a variable's name of some words.
func envName(words ...string) string {
	var b strings.Builder
	for _, r := range strings.ToUpper(strings.Join(words, "_")) {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if s := b.String(); s != "" && s[len(s)-1] != '_' {
			b.WriteByte('_')
		}
	}
	name := strings.Trim(b.String(), "_")
	if name == "" || name[0] <= '9' {
		name = "MCP_" + name
	}
	return name
}
