package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is one word of a query.
type token struct {
	word     string
	stem     string
	argument bool // quoted, a number, an address, a path: the value of an argument, not a description of a tool
	name     bool // capitalised within a sentence
	clause   int  // sentence of the query, from 0
	extra    bool // part of a camelCase run that is itself a term
}

// tokenize splits a query into words and tells arguments from descriptions.
func tokenize(text string) []token {
	var tokens []token
	var quote rune
	sentenceStart := true
	clause := 0
	for _, chunk := range strings.Fields(text) {
		closing := quote
		if quote == 0 {
			if q, ok := opensQuote(chunk); ok && strings.ContainsRune(text, q) {
				quote, closing = q, q
			}
		}
		inQuote := quote != 0
		if inQuote && closesQuote(chunk, closing) {
			quote = 0
		}
		first, _ := utf8.DecodeRuneInString(strings.TrimLeft(chunk, `"'“‘([`))
		name := !sentenceStart && unicode.IsUpper(first)
		argument := inQuote || isAddress(chunk)
		begin := len(tokens)
		if begin > 0 && sentenceStart {
			clause = min(clause+1, maxClauses-1)
		}
		eachWord(chunk, func(word string, extra bool) {
			if extra {
				// The parts stand just before the run that they make up.
				n := 0
				for i := len(tokens) - 1; i >= begin && n < len(word); i-- {
					tokens[i].extra = true
					n += len(tokens[i].word)
				}
			}
			tokens = append(tokens, token{word: word, stem: stem(word), argument: argument || isIdentifier(word), name: name, clause: clause})
		})
		sentenceStart = strings.HasSuffix(chunk, ".") || strings.HasSuffix(chunk, "?") || strings.HasSuffix(chunk, "!") || strings.HasSuffix(chunk, ":")
	}
	if quote != 0 || allArguments(tokens) { // never closed, or nothing else: no quotation
		for i := range tokens {
			tokens[i].argument = isIdentifier(tokens[i].word) && len(tokens) > 1
		}
	}
	return tokens
}

func allArguments(tokens []token) bool {
	return !slices.ContainsFunc(tokens, func(t token) bool { return !t.argument })
}

var quotes = map[rune]rune{'"': '"', '\'': '\'', '“': '”', '‘': '’', '`': '`', '«': '»', '<': '>', '「': '」'}

// opensQuote reports whether a quotation begins with this chunk, and the rune that closes it.
func opensQuote(chunk string) (rune, bool) {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(chunk, "([{"))
	q, ok := quotes[r]
	return q, ok
}

func closesQuote(chunk string, q rune) bool {
	chunk = strings.TrimRight(chunk, ".,;:!?)]}")
	if i := strings.LastIndex(chunk, string(q)); i >= 0 {
		rest := chunk[i+len(string(q)):]
		return i > 0 && (rest == "" || rest == "s" || q != '\'')
	}
	return false
}

// isAddress reports whether a chunk is a URL, a mail address or a path.
func isAddress(chunk string) bool {
	chunk = strings.Trim(chunk, `"'()[]<>,;`)
	switch {
	case strings.Contains(chunk, "://"), strings.HasPrefix(chunk, "www."):
		return true
	case strings.HasPrefix(chunk, "/"), strings.HasPrefix(chunk, "~/"), strings.HasPrefix(chunk, "./"), strings.HasPrefix(chunk, `\\`):
		return len(chunk) > 2
	case len(chunk) > 3 && chunk[1] == ':' && chunk[2] == '\\':
		return true
	}
	at := strings.IndexByte(chunk, '@')
	return at > 0 && strings.IndexByte(chunk[at:], '.') > 0
}

// isIdentifier reports whether a word is a number or the like of a key: digits only, or long and mixed.
func isIdentifier(word string) bool {
	digits := 0
	for i := range len(word) {
		if isDigit(word[i]) {
			digits++
		}
	}
	return digits == len(word) && digits > 0 || digits >= 2 && len(word) >= 6 || digits >= 1 && len(word) >= 12
}
