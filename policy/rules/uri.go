package rules

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/runtime/tool"
)

// normal is the call with the URIs of resources in their normal form; nil if they have it, or if it asks for none. Only
// methods of a library are looked at: what a tool's argument means is its own affair. whole is as for [normalURI].
func (c *Call) normal(whole bool) *Call {
	if c.Definition == nil || !strings.Contains(c.Definition.Name, "/") {
		return nil
	}
	args := normalMember(c.Arguments, c.Definition, whole)
	if ref, ok := c.Arguments["ref"].(map[string]any); ok { // of a completion
		if changed := normalMember(ref, c.Definition, whole); changed != nil {
			if args == nil {
				args = maps.Clone(c.Arguments)
			}
			args["ref"] = changed
		}
	}
	if args == nil {
		return nil
	}
	n := *c
	n.Arguments = args
	return &n
}

// normalMember is an object with its URI in normal form; nil if nothing changes.
func normalMember(o map[string]any, d *tool.Definition, whole bool) map[string]any {
	uri, ok := o["uri"].(string)
	if !ok {
		return nil
	}
	n := normalURI(uri, d.SourceName, whole)
	if n == uri {
		return nil
	}
	o = maps.Clone(o)
	o["uri"] = n
	return o
}

var (
	scheme  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	escaped = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
)

// normalURI is the normal form of RFC 3986, section 6.2.2: scheme and host in lower case, no escapes of unreserved
// characters, no dot segments. It also takes off hermesd's own mcp://SERVER/ and does what common parsers do: blanks around
// a URI, tabs and line ends in it and a default port go; in file, http and https a backslash is a slash. A file URI has no
// host if that is this machine (RFC 8089), and no escaped or doubled slashes, which no file name holds. It has no query
// either: with whole, a question mark and a number sign are part of its path, as servers see it that only cut off "file://".
func normalURI(uri, server string, whole bool) string {
	uri = strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, strings.TrimFunc(uri, func(r rune) bool { return r <= ' ' }))
	for own := "mcp://" + server + "/"; len(uri) >= len(own) && strings.EqualFold(uri[:len(own)], own); {
		uri = uri[len(own):]
	}
	kind := scheme.FindString(uri)
	if kind == "" {
		return unescape(uri, false)
	}
	rest := uri[len(kind):]
	kind = strings.ToLower(kind)
	file, web := kind == "file:", kind == "http:" || kind == "https:"
	tail := ""
	if end := strings.IndexAny(rest, "?#"); end >= 0 && !(whole && file) {
		rest, tail = rest[:end], unescape(rest[end:], false)
	}
	if file || web {
		rest = strings.ReplaceAll(rest, `\`, "/")
	}
	rest = unescape(rest, file)
	host, path, authority := "", rest, false
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		authority = true
		if slash := strings.IndexByte(after, '/'); slash >= 0 {
			host, path = after[:slash], after[slash:]
		} else {
			host, path = after, ""
		}
		at := strings.LastIndexByte(host, '@') + 1
		host = host[:at] + strings.TrimSuffix(strings.ToLower(host[at:]), ":")
	}
	switch {
	case file:
		authority = authority || strings.HasPrefix(path, "/")
		if host == "localhost" {
			host = ""
		}
	case kind == "http:":
		host = strings.TrimSuffix(host, ":80")
	case kind == "https:":
		host = strings.TrimSuffix(host, ":443")
	}
	if web && authority && path == "" {
		path = "/"
	}
	if strings.HasPrefix(path, "/") {
		path = withoutDots(path, file)
	}
	if authority {
		return kind + "//" + host + path + tail
	}
	return kind + path + tail
}

// unescape decodes the escapes of unreserved characters, and of slashes if those are wanted. The others are in capitals.
func unescape(s string, slashes bool) string {
	return escaped.ReplaceAllStringFunc(s, func(e string) string {
		e = strings.ToUpper(e)
		b := digit(e[1])<<4 | digit(e[2])
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', strings.IndexByte("-._~", b) >= 0, slashes && b == '/':
			return string(rune(b))
		}
		return e
	})
}

func digit(b byte) byte {
	if b >= 'A' {
		return b - 'A' + 10
	}
	return b - '0'
}

// withoutDots removes the dot segments of a path that begins with a slash (RFC 3986, section 5.2.4), and empty ones if
// those mean nothing.
func withoutDots(path string, empty bool) string {
	parts := strings.Split(path[1:], "/")
	kept := make([]string, 0, len(parts)+1)
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "..":
			kept = slices.Delete(kept, max(len(kept)-1, 0), len(kept))
		case part == "." || part == "" && empty:
		default:
			kept = append(kept, part)
			continue
		}
		if last {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}
