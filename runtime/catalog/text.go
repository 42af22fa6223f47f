package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Summary is the first sentence of the tool's description in at most max characters, cut on a word.
func (e *Entry) Summary(max int) string {
	return strings.TrimSuffix(Excerpt(FirstSentence(e.Definition.Description), max), ".")
}

// Excerpt returns text on one line and in at most max characters, cut on a word with an ellipsis.
func Excerpt(text string, max int) string {
	text = oneLine(text)
	if utf8.RuneCountInString(text) <= max {
		return text
	}
	end, chars := 0, 0 // of what fits beside the ellipsis
	for i := range text {
		if chars == max-1 {
			end = i
			break
		}
		chars++
	}
	cut := text[:end]
	if text[end] != ' ' {
		// In a word. A text without spaces, as in Chinese, is cut where it is.
		if space := strings.LastIndexByte(cut, ' '); space > 0 {
			cut = cut[:space]
		}
	}
	return strings.TrimRight(cut, " ,;:-") + "…"
}

// FirstSentence returns the text up to the end of its first sentence or paragraph. The periods of "e.g.", "i.e." and
// "etc." end none.
func FirstSentence(text string) string {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "")
	for i, r := range text {
		rest := text[i+utf8.RuneLen(r):]
		switch r {
		case '。', '！', '？':
			return text[:len(text)-len(rest)]
		case '\n':
			if strings.HasPrefix(strings.TrimLeft(rest, " \t\r"), "\n") {
				return text[:i]
			}
		case '.', '!', '?':
			next, _ := utf8.DecodeRuneInString(rest)
			if rest != "" && unicode.IsSpace(next) && !(r == '.' && endsAbbreviation(text[:i])) {
				return text[:len(text)-len(rest)]
			}
		}
	}
	return text
}

func endsAbbreviation(before string) bool {
	word := before[strings.LastIndexFunc(before, func(r rune) bool { return unicode.IsSpace(r) || r == '(' })+1:]
	switch strings.ToLower(word) {
	case "e.g", "i.e", "etc":
		return true
	}
	return false
}

// oneLine makes every run of spaces one, and drops characters that are not seen: what third parties write must neither
// break a line of a listing nor hide something in it.
func oneLine(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	space := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co), r == utf8.RuneError:
		default:
			if space {
				b.WriteByte(' ')
				space = false
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}
