package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
)

// sayf prints for people. All that this program prints and that is not JSON passes here, for most of it comes from somebody
// else: agents name tools that do not exist, servers describe themselves. No argument can move the cursor, begin a line or
// turn the direction of writing; one of type [lines] keeps its line ends and tabs.
func sayf(w io.Writer, format string, args ...any) (int, error) {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch x := arg.(type) {
		case nil, bool, int, int32, int64, uint64, float64:
			safe[i] = x
		case lines:
			safe[i] = escape(string(x), movesCursor)
		case []byte:
			safe[i] = printable(string(x))
		case json.RawMessage:
			safe[i] = printable(string(x))
		default:
			safe[i] = printable(fmt.Sprint(x))
		}
	}
	return fmt.Fprintf(w, format, safe...)
}

// lines is a text of several lines.
type lines string

// indented keeps the lines of a text apart from those that the program itself begins.
func indented(text, indent string) lines { return lines(strings.ReplaceAll(text, "\n", "\n"+indent)) }

// printable makes a text of one line.
func printable(s string) string {
	return escape(s, func(r rune) bool { return !strconv.IsPrint(r) })
}

// movesCursor are the characters that a terminal obeys instead of showing them, and those that turn the direction.
func movesCursor(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// escape writes some characters, and bytes that are no UTF-8, as Go source has them.
func escape(s string, hidden func(rune) bool) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !hidden(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// isTerminal says that a person reads what is written there, not a file or a program.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// printText prints a text as the tool gave it, for programs; on a terminal nothing in it moves the cursor but line ends and
// tabs.
func (c *cli) printText(text string) error {
	if c.terminal {
		_, err := sayf(c.out, "%s\n", lines(text))
		return err
	}
	_, err := io.WriteString(c.out, text+"\n")
	return err
}

// printLines prints values that are JSON already, one a line.
func (c *cli) printLines(values [][]byte) error {
	for _, raw := range values {
		if _, err := fmt.Fprintf(c.out, "%s\n", raw); err != nil {
			return err
		}
	}
	return nil
}
