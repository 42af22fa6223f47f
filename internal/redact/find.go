package redact

import (
	"slices"
	"strings"
)

// finder finds secrets in one pass over a text, however many they are.
type finder struct {
	short  map[string]bool     // those that are masked as whole texts only
	byHead map[string][]string // the others by their first MinLength bytes
	pairs  pairs               // their first two bytes: most places of a text are passed by with one look
}

// pairs is a set of pairs of bytes.
type pairs [1 << 16 / 64]uint64

func (p *pairs) add(a, b byte) {
	n := uint(a)<<8 | uint(b)
	p[n/64] |= 1 << (n % 64)
}

func (p *pairs) has(a, b byte) bool {
	n := uint(a)<<8 | uint(b)
	return p[n/64]&(1<<(n%64)) != 0
}

// span is a part of a text: from its first byte up to, and without, its byte end.
type span struct{ from, end int }

func (f *finder) mask(s string) string {
	if f.short[s] {
		return Mark
	}
	// A mark may make a secret of what stands beside it, where the secret has asterisks itself. Each round makes the text
	// shorter, so that this ends.
	for f.hits(s) {
		s = replace(s, f.find(s))
	}
	return s
}

// hits reports whether a secret stands in s, in whichever spelling. Most texts have none, and where the bytes of one come
// from need not be known for that.
func (f *finder) hits(s string) bool {
	if f.inside(s) {
		return true
	}
	plain, changed := undo(s, '\\', backslash)
	for depth := 1; changed && depth <= maxDepth; depth++ {
		if f.inside(plain) {
			return true
		}
		plain, changed = undo(plain, '\\', backslash)
	}
	plain, changed = undo(s, '%', percent)
	return changed && f.inside(plain)
}

func (f *finder) inside(s string) bool {
	for i := 0; i+MinLength <= len(s); i++ {
		if f.pairs.has(s[i], s[i+1]) && f.longest(s[i:]) > 0 {
			return true
		}
	}
	return false
}

// longest is how much of the head of s is a secret, or more than one.
func (f *finder) longest(s string) (n int) {
	for _, secret := range f.byHead[s[:MinLength]] {
		n = max(n, match(s, secret))
	}
	return n
}

// find returns where secrets stand in s, in whichever spelling, in order and without overlaps.
func (f *finder) find(s string) []span {
	found := f.scan(view{text: s}, nil)
	for v, more := (view{text: s}).decode('\\', backslash); more; v, more = v.decode('\\', backslash) {
		found = f.scan(v, found)
		if v.depth == maxDepth {
			break
		}
	}
	if v, more := (view{text: s}).decode('%', percent); more {
		found = f.scan(v, found)
	}
	return merge(found)
}

// scan adds the secrets of a view, as parts of the text that it was made from. Secrets that overlap become one part, so
// that nothing of either is left.
func (f *finder) scan(v view, found []span) []span {
	s := v.text
	end := -1 // of the last part, in the view
	for i := 0; i+MinLength <= len(s); i++ {
		if !f.pairs.has(s[i], s[i+1]) {
			continue
		}
		n := f.longest(s[i:])
		switch {
		case n == 0:
		case i < end:
			end = max(end, i+n)
			found[len(found)-1].end = v.end(end)
		default:
			end = i + n
			found = append(found, span{v.from(i), v.end(end)})
		}
	}
	return found
}

// minCut is how many bytes of a secret must be left of it where a text was cut to be known.
const minCut = 8

// match is how much of the head of s is a secret: all of it, or what a cut left.
func match(s, secret string) int {
	if strings.HasPrefix(s, secret) {
		return len(secret)
	}
	n := 0
	for n < len(s) && n < len(secret) && s[n] == secret[n] {
		n++
	}
	if n >= minCut && (n == len(s) || strings.HasPrefix(s[n:], "…")) {
		return n
	}
	return 0
}

// merge sorts parts and makes one of those that overlap.
func merge(found []span) []span {
	if len(found) < 2 {
		return found
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	merged := found[:1]
	for _, s := range found[1:] {
		if last := &merged[len(merged)-1]; s.from < last.end {
			last.end = max(last.end, s.end)
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}

func replace(s string, found []span) string {
	var b strings.Builder
	b.Grow(len(s))
	at := 0
	for _, f := range found {
		b.WriteString(s[at:f.from])
		b.WriteString(Mark)
		at = f.end
	}
	b.WriteString(s[at:])
	return b.String()
}
