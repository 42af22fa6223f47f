package procgroup

import (
	"bytes"
	"strings"
	"sync"
)

// maxTailLine bounds one kept line, in bytes.
const maxTailLine = 512

// TailBuffer keeps the last lines that were written to it, for error texts. It never fails and never grows.
type TailBuffer struct {
	mu      sync.Mutex
	lines   []string // complete lines, oldest first
	partial []byte
	limit   int
	skipped bool // the rest of an overlong line is being skipped
}

// Tail keeps the last n lines, each at most 512 bytes.
func Tail(n int) *TailBuffer { return &TailBuffer{limit: max(n, 1)} }

// Write implements [io.Writer].
func (t *TailBuffer) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := b; len(rest) > 0; {
		piece, after, ended := bytes.Cut(rest, []byte{'\n'})
		if !t.skipped {
			room := maxTailLine - len(t.partial)
			if len(piece) > room {
				piece, t.skipped = piece[:room], true
			}
			t.partial = append(t.partial, piece...)
		}
		if ended {
			t.endLine()
		}
		rest = after
	}
	return len(b), nil
}

func (t *TailBuffer) endLine() {
	if line := clean(t.partial); line != "" {
		if len(t.lines) == t.limit {
			t.lines = append(t.lines[:0], t.lines[1:]...)
		}
		t.lines = append(t.lines, line)
	}
	t.partial, t.skipped = t.partial[:0], false
}

// Lines returns the kept lines, oldest first, without control characters.
func (t *TailBuffer) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := append([]string(nil), t.lines...)
	if line := clean(t.partial); line != "" {
		lines = append(lines, line)
	}
	return lines[max(0, len(lines)-t.limit):]
}

// String joins the kept lines with newlines.
func (t *TailBuffer) String() string { return strings.Join(t.Lines(), "\n") }

// clean makes a line of a foreign program fit to be shown: valid UTF-8 without control characters.
func clean(line []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(line), "\uFFFD")))
}
