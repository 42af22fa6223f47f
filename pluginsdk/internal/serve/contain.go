package serve

import (
	"fmt"
	"runtime/debug"
	"strings"
	"unicode/utf8"
)

// caught is a contained panic.
type caught struct {
	value any
	stack string
}

func (c *caught) Error() string { return fmt.Sprint(c.value) }

// contain runs f and returns its panic, if any.
func contain(f func()) (p *caught) {
	defer func() {
		if v := recover(); v != nil {
			p = &caught{value: v, stack: string(debug.Stack())}
		}
	}()
	f()
	return nil
}

// clean makes s fit for a protobuf string, which refuses invalid UTF-8.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// limitText cuts s after maxErrorBytes at a character's end.
func limitText(s string) string {
	if len(s) <= maxErrorBytes {
		return s
	}
	cut := maxErrorBytes
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
