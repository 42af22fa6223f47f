package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"golang.org/x/text/unicode/norm"
)

// maxWord bounds one word, in bytes; longer runs (encoded blobs, hashes) are cut there.
const maxWord = 64

// eachWord calls emit for every word of text, in order, lower case and with accents folded but not stemmed. Words are
// runs of letters and digits of any script. A run in camelCase gives its parts and then the whole run, marked as an
// extra; Han, Kana and Hangul give bigrams.
func eachWord(text string, emit func(word string, extra bool)) {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf && !isAlnum(c) {
			i++
			continue
		}
		end, ascii := i, true
		for end < len(text) {
			c := text[end]
			if c < utf8.RuneSelf {
				if !isAlnum(c) {
					break
				}
				end++
				continue
			}
			r, n := utf8.DecodeRuneInString(text[end:])
			if !isWordRune(r) {
				break
			}
			ascii = false
			end += n
		}
		switch {
		case end == i: // a rune that is no part of a word
			_, n := utf8.DecodeRuneInString(text[i:])
			i += n
			continue
		case ascii:
			camelWords(text[i:end], emit)
		default:
			unicodeWords(text[i:end], emit)
		}
		i = end
	}
}

func isAlnum(c byte) bool { return isLower(c) || isUpper(c) || isDigit(c) }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// camelWords splits one ASCII run at changes of case. A part of one letter is never split off ("OAuth", "iPhone"), nor
// the plural of an acronym ("URLs").
func camelWords(run string, emit func(string, bool)) {
	if len(run) > maxWord {
		run = run[:maxWord]
	}
	start := 0
	for i := 1; i+1 < len(run); i++ {
		var cut bool
		switch {
		case !isUpper(run[i]):
		case isLower(run[i-1]):
			cut = true
		case isUpper(run[i-1]) && isLower(run[i+1]):
			cut = run[i+1] != 's' || i+2 < len(run) && isLower(run[i+2])
		case isDigit(run[i-1]) && isLower(run[i+1]):
			cut = true
		}
		if cut && i-start > 1 {
			emit(strings.ToLower(run[start:i]), false)
			start = i
		}
	}
	if start == 0 {
		emit(strings.ToLower(run), false)
		return
	}
	emit(strings.ToLower(run[start:]), false)
	emit(strings.ToLower(run), true)
}

// unfolded maps letters that have no decomposition to what people type instead of them.
var unfolded = strings.NewReplacer(
	"ß", "ss", "æ", "ae", "ø", "o", "ł", "l", "đ", "d", "ı", "i", "œ", "oe", "þ", "th", "ð", "d",
	"Æ", "Ae", "Ø", "O", "Ł", "L", "Đ", "D", "Œ", "Oe", "Þ", "Th", "Ð", "D",
)

// unicodeWords splits a run that holds more than ASCII into stretches of ideographs and stretches of other letters.
func unicodeWords(run string, emit func(string, bool)) {
	run = norm.NFKC.String(run)
	for len(run) > 0 {
		first, _ := utf8.DecodeRuneInString(run)
		dense := isDense(first)
		end := strings.IndexFunc(run, func(r rune) bool { return isDense(r) != dense })
		if end < 0 {
			end = len(run)
		}
		if dense {
			bigrams(run[:end], emit)
		} else if folded := fold(run[:end]); isASCII(folded) {
			camelWords(folded, emit)
		} else {
			emit(cut(strings.ToLower(folded), maxWord), false)
		}
		run = run[end:]
	}
}

// isDense reports whether a rune belongs to a script that writes words without spaces and is indexed by bigrams.
func isDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r == 'ー'
}

func bigrams(run string, emit func(string, bool)) {
	last := -1
	for i := range run {
		_, n := utf8.DecodeRuneInString(run[i:])
		if last >= 0 {
			emit(run[last:i+n], false)
		} else if i+n == len(run) {
			emit(run, false)
		}
		last = i
	}
}

// fold removes accents and keeps the case.
func fold(s string) string {
	var b strings.Builder
	for _, r := range norm.NFD.String(s) {
		if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(r)
		}
	}
	return unfolded.Replace(norm.NFC.String(b.String()))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// cut shortens s to at most n bytes without splitting a rune.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// stem reduces an English word to its stem (Snowball's English algorithm); other words stay as they are.
func stem(word string) string {
	if len(word) < 3 {
		return word
	}
	for i := range len(word) {
		if !isLower(word[i]) {
			return word
		}
	}
	// The plural of an acronym ("prs", "vms"): the algorithm wants a vowel before it takes an s off.
	if n := len(word) - 1; word[n] == 's' && word[n-1] != 's' && !strings.ContainsAny(word, "aeiouy") {
		return word[:n]
	}
	env := snowballstem.NewEnv(word)
	english.Stem(env)
	return env.Current()
}

// squash is the form under which names are compared: letters and digits only, lower case, accents folded.
func squash(s string) string {
	if !isASCII(s) {
		s = fold(norm.NFKC.String(s))
	}
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if r < utf8.RuneSelf {
			if c := byte(r); isUpper(c) {
				out = append(out, c+'a'-'A')
			} else if isAlnum(c) {
				out = append(out, c)
			}
		} else if isWordRune(r) {
			out = utf8.AppendRune(out, unicode.ToLower(r))
		}
	}
	return string(out)
}
