package catalog_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/hermesd/hermesd/runtime/catalog"
)

// Guards fault 95050: a listing cut at "e.g.".
func TestFirstSentence(t *testing.T) {
	for text, want := range map[string]string{
		"Reads a file. Then stops.":                          "Reads a file.",
		"Searches, e.g. by name, i.e. the title. More.":      "Searches, e.g. by name, i.e. the title.",
		"Issues, pull requests, etc. of a repository. More.": "Issues, pull requests, etc. of a repository.",
		"Notes (e.g. todos). More.":                          "Notes (e.g. todos).",
		"Speaks HTTP 1.1 and v2.0 only. More.":               "Speaks HTTP 1.1 and v2.0 only.",
		"Title\n\nBody.":                                     "Title",
		"One\ntwo. Three.":                                   "One\ntwo.",
		"Really? Yes.":                                       "Really?",
		"ページを検索します。次の文。":                                     "ページを検索します。",
		"no end":  "no end",
		"":        "",
		"\xff. a": ".",
	} {
		if got := catalog.FirstSentence(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		max  int
		want string
	}{
		"short text stays":                {"Creates an issue", 60, "Creates an issue"},
		"cut on a word":                   {"Creates an issue in a repository", 20, "Creates an issue in…"},
		"cut at the end of a word":        {"Creates an issue in a repository", 17, "Creates an issue…"},
		"cut within the first word":       {strings.Repeat("x", 30), 10, strings.Repeat("x", 9) + "…"},
		"lines become one":                {"a\n\n  b\tc ", 60, "a b c"},
		"unseen characters go":            {"a\u200b\u202eb\U000e0041\x00c", 60, "abc"},
		"a script without spaces":         {strings.Repeat("検", 30), 10, strings.Repeat("検", 9) + "…"},
		"no comma before the ellipsis":    {"one, two, three", 10, "one, two…"},
		"exactly as long as is permitted": {"12345", 5, "12345"},
	} {
		if got := catalog.Excerpt(test.text, test.max); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestExcerptIsNeverLongerThanAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, max := rapid.String().Draw(t, "text"), rapid.IntRange(1, 80).Draw(t, "max")
		got := catalog.Excerpt(text, max)
		if utf8.RuneCountInString(got) > max || strings.ContainsAny(got, "\n\r\x00") || !utf8.ValidString(got) {
			t.Fatalf("%q cut to %d: %q", text, max, got)
		}
		if again := catalog.Excerpt(got, max); again != got {
			t.Fatalf("cut twice: %q, then %q", got, again)
		}
	})
}

func FuzzFirstSentence(f *testing.F) {
	f.Add("a. b")
	f.Add("\xff.\xfe ")
	f.Fuzz(func(t *testing.T, text string) {
		got := catalog.FirstSentence(text)
		if len(got) > len(text) {
			t.Errorf("%q became longer: %q", text, got)
		}
	})
}
