package main

import (
	"strings"
	"unicode/utf8"
)

// tail keeps the end of what is written to it.
type tail struct {
	keep  int
	buf   []byte
	total int64
}

// Write never fails and keeps at most twice what is asked for.
func (t *tail) Write(b []byte) (int, error) {
	t.total += int64(len(b))
	if len(b) > t.keep {
		t.buf = append(t.buf[:0], b[len(b)-t.keep:]...)
		return len(b), nil
	}
	if len(t.buf)+len(b) > 2*t.keep {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.keep:]...)
	}
	t.buf = append(t.buf, b...)
	return len(b), nil
}

// text is what was kept, as valid text, and how many bytes came before it.
func (t *tail) text() (string, int64) {
	b := t.buf
	if len(b) > t.keep {
		b = b[len(b)-t.keep:]
	}
	if t.total > int64(len(b)) { // begin with a whole character
		for i := 0; i < utf8.UTFMax && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
			b = b[1:]
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), t.total - int64(len(b))
}
