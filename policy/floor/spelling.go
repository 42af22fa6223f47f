package floor

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// spellings are the paths that a text may be to whoever gets it: as it stands, without what surrounds it, and what the
// file URI in it names. RFC 8089 leaves the case of the scheme and the host free; servers differ in whether they take
// escapes, a host, a query and a fragment for part of the name.
func spellings(s string) []string {
	list := []string{s}
	bare := trim(s)
	if bare != s {
		list = append(list, bare)
	}
	if len(bare) > maxURI {
		return list
	}
	at := fileURI.FindStringSubmatchIndex(bare)
	if at == nil {
		return list
	}
	rest := bare[at[2]:]
	names := []string{rest}
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		names = []string{after}
		if slash := strings.IndexByte(after, '/'); slash > 0 { // what stands before it is a host
			names = append(names, after[slash:])
		}
	}
	for _, name := range names {
		list = append(list, trim(unescape(name)))
		if end := strings.IndexAny(name, "?#"); end >= 0 {
			list = append(list, trim(unescape(name[:end])))
		}
	}
	return list
}

// fileURI finds a file URI, also as the rest of another one: mcp://kb/file:///a.
var fileURI = regexp.MustCompile(`(?i)(?:^|/)file:(.?)`)

// trim cuts blanks and control characters off both ends, as many tools do with a path before they use it.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// unescape decodes percent escapes and leaves what is none.
func unescape(s string) string {
	return escape.ReplaceAllStringFunc(s, func(e string) string { return char(e[1:], 16) })
}

// ansi is a text in the shell's quotes for escapes, $'…'.
var ansi = regexp.MustCompile(`(?s)^\$'((?:[^'\\]|\\.)*)'`)

// ansiAnywhere is ansi within a word that may be a command itself.
var ansiAnywhere = regexp.MustCompile(`(?s)\$'(?:[^'\\]|\\.)*'`)

var ansiEscape = regexp.MustCompile(`(?s)\\(?:x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)`)

// unquoteANSI decodes what stands between $' and '.
func unquoteANSI(s string) string {
	return ansiEscape.ReplaceAllStringFunc(s, func(e string) string {
		switch kind, rest := e[1], e[2:]; {
		case kind == 'x' && rest != "":
			return char(rest, 16)
		case (kind == 'u' || kind == 'U') && rest != "":
			if n, err := strconv.ParseUint(rest, 16, 31); err == nil {
				return string(rune(n))
			}
			return e
		case kind >= '0' && kind <= '7':
			return char(e[1:], 8)
		case strings.IndexByte("abeEfnrtvc", kind) >= 0:
			return " " // a control character
		default:
			return e[1:]
		}
	})
}

// char is the byte of a number; past a byte, the shell drops what is too much.
func char(digits string, base int) string {
	n, err := strconv.ParseUint(digits, base, 16)
	if err != nil {
		return digits
	}
	return string([]byte{byte(n)})
}
