package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxReason = 1000 // characters of a human's reason that an agent reads
	maxShown  = 2000 // characters of a call's arguments in a question
)

// plain makes a text safe to be shown: what cannot be seen, or changes how the rest is seen, appears as its code point. So
// a call cannot look like another one. What is longer than limit characters ends with a note that says so.
func plain(s string, limit int) string {
	var out strings.Builder
	n := 0
	for i, r := range s {
		if n++; n > limit {
			fmt.Fprintf(&out, "… (%d more characters)", utf8.RuneCountInString(s[i:]))
			break
		}
		if r == '\n' || unicode.IsPrint(r) {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, `\u{%04x}`, r)
		}
	}
	return out.String()
}

// Text is the request as a human reads it: what would run, with which arguments, who asks and why.
func (p *Pending) Text() string { return describe(p) }

// describe is a request as a human reads it.
func describe(p *Pending) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s (%s %s), for agent %s", p.Tool, p.Source, plain(p.SourceName, 64), plain(p.Agent, 64))
	if p.Hints.IsDestructive() {
		out.WriteString(", may be destructive")
	}
	fmt.Fprintf(&out, "\n%s\nAsked by: %s", plain(indented(p.Arguments), maxShown), plain(p.Rule, 200))
	if p.Reason != "" {
		fmt.Fprintf(&out, "\nBecause: %s", plain(p.Reason, maxReason))
	}
	if p.Pattern != nil {
		fmt.Fprintf(&out, "\n\"always\" covers: %s", plain(p.Pattern.String(), maxShown))
	}
	return out.String()
}

// indented writes arguments one to a line.
func indented(args json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, args, "", "  ") != nil {
		return string(args)
	}
	return b.String()
}
