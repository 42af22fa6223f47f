package main

import (
	"fmt"
	"strings"
	"unicode"
)

// shownLine is how much of a line an error shows, in characters.
const shownLine = 120

// nearest explains why old may not occur in text: other white space, other line ends, or the line that looks most like
// its first one.
func nearest(text, old string) string {
	if strings.Contains(text, "\r\n") && strings.Contains(strings.ReplaceAll(text, "\r\n", "\n"), old) {
		return `The file's lines end in "\r\n": write them so in the old text too.`
	}
	want := firstLine(old)
	if want == "" {
		return "Read the file again to see what it holds."
	}
	best, bestLine, bestScore := "", 0, 0.0
	pairs := bigrams(want)
	number := 0
	for line := range strings.Lines(text) {
		number++
		trimmed := strings.TrimSpace(line)
		if trimmed == want {
			return fmt.Sprintf("Line %d is the same as the old text's first line except for white space, or what follows it differs: %q.", number, shorten(strings.TrimRight(line, "\r\n")))
		}
		if score := similarity(pairs, trimmed); score > bestScore {
			best, bestLine, bestScore = line, number, score
		}
	}
	if bestScore < 0.4 {
		return "No line looks like it; read the file again to see what it holds."
	}
	return fmt.Sprintf("The nearest line is %d: %q.", bestLine, shorten(strings.TrimRight(best, "\r\n")))
}

// firstLine is the first line with something on it, without its margins.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if t := strings.TrimSpace(line); t != "" {
			return t
		}
	}
	return ""
}

func shorten(s string) string {
	r := []rune(s)
	if len(r) <= shownLine {
		return s
	}
	return string(r[:shownLine]) + "…"
}

// bigrams counts the pairs of neighbouring letters, without case and white space.
func bigrams(s string) map[[2]rune]int {
	pairs := map[[2]rune]int{}
	var last rune
	for _, r := range shorten(s) {
		if unicode.IsSpace(r) {
			continue
		}
		r = unicode.ToLower(r)
		if last != 0 {
			pairs[[2]rune{last, r}]++
		}
		last = r
	}
	return pairs
}

// similarity is Dice's coefficient of the two lines' bigrams: 0 for nothing in common, 1 for the same pairs.
func similarity(want map[[2]rune]int, line string) float64 {
	have := bigrams(line)
	common, total := 0, 0
	for pair, n := range have {
		total += n
		common += min(n, want[pair])
	}
	for _, n := range want {
		total += n
	}
	if total == 0 {
		return 0
	}
	return 2 * float64(common) / float64(total)
}
