package procgroup

import (
	"regexp"
	"slices"
)

var (
	// blaming is a line that says what went wrong.
	blaming = regexp.MustCompile(`(?i)error\b|exception\b|\b(panic|fatal|cannot|can't|could not|unable|failed|denied|refused|missing|invalid|not found|no such|out of memory)\b`)
	// framing is a line of a stack trace, or of what JavaScript engines print around an error: where it happened, not what.
	framing = regexp.MustCompile(`^at |^File "|^Traceback |^goroutine \d+|\.go:\d+|^[\w./*()]+\([^ ]*\)$|^node:[\w/]+:\d+$|^throw \w+;?$|^Node\.js v|^[\s\^~{}()\[\];,.-]*$|^['\w]+: ('[^']*'|\[.*|\{.*|undefined|null|\d+),?$`)
)

// Telling picks at most n of a program's last lines, in their order, for an error text: those that say what went wrong, and
// the very last. Lines of stack traces are taken only if there is nothing else.
func Telling(lines []string, n int) []string {
	n = max(n, 1)
	said := slices.DeleteFunc(slices.Clone(lines), framing.MatchString)
	if len(said) == 0 {
		return lines[max(0, len(lines)-n):]
	}
	last := len(said) - 1
	blames := slices.DeleteFunc(slices.Clone(said[:last]), func(s string) bool { return !blaming.MatchString(s) })
	if len(blames) == 0 {
		return said[max(0, len(said)-n):]
	}
	return append(blames[max(0, len(blames)-n+1):], said[last])
}
