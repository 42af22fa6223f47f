package importer

import (
	"net/url"
	"strings"
)

// addressPart is a piece of an address: one of its path, or a parameter of its query.
type addressPart struct {
	before string // what separates it from the part before, a parameter's name included
	name   string // of the parameter; "" within the path
	value  string // as it is written
	secret bool
}

// splitAddress takes an address apart. What its parts say is what it says.
func splitAddress(s string) []addressPart {
	base, query, hasQuery := strings.Cut(s, "?")
	begin := strings.Index(base, "://") + len("://")
	host, path, hasPath := strings.Cut(base[begin:], "/")
	parts := []addressPart{{value: base[:begin] + host}}
	if hasPath {
		for _, segment := range strings.Split(path, "/") {
			// A revision of a repository is a digest, and no secret.
			secret := !strings.HasPrefix(s, "git+") && secretText(strings.ReplaceAll(unescaped(segment), "/", ""))
			parts = append(parts, addressPart{before: "/", value: segment, secret: secret})
		}
	}
	if !hasQuery {
		return parts
	}
	separator := "?"
	for _, parameter := range strings.Split(query, "&") {
		name, value, ok := strings.Cut(parameter, "=")
		before := separator + name
		if ok {
			before += "="
		}
		parts = append(parts, addressPart{before: before, name: name, value: value, secret: value != "" && !harmless(name, unescaped(value))})
		separator = "&"
	}
	return parts
}

// unescaped is a part of an address without its percent signs.
func unescaped(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// hasLogin reports whether a text is an address with a password, or with a token in the place of the user name.
func hasLogin(s string) bool {
	u, err := url.Parse(s)
	if err != nil { // a password that was not escaped, for example
		_, rest, _ := strings.Cut(s, "://")
		authority, _, _ := strings.Cut(rest, "/")
		return strings.Contains(authority, "@") || strings.Contains(rest, "@") && strings.Contains(authority, ":")
	}
	if u.User == nil {
		return false
	}
	_, ok := u.User.Password()
	return ok || secretText(u.User.Username())
}

// address reads a URL. Secret parts of it are taken out; one with a login is a secret as a whole.
func (im *importing) address(key, s string) text {
	if reference.MatchString(s) { // what it is made of is not known yet
		return im.expand(key, s, false, envName(im.label, "URL"), "")
	}
	if hasLogin(s) {
		return im.expand(key, s, true, envName(im.label, "URL"), "")
	}
	var t text
	for _, p := range splitAddress(s) {
		name := p.name
		if name == "" {
			name = "URL_PATH"
		}
		t = append(t, literal(p.before)...)
		t = append(t, im.expand(key, p.value, p.secret, envName(im.label, name), "")...)
	}
	return t.joined()
}
