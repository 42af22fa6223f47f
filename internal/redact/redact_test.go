package redact_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/internal/redact"
)

const pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2Vw\nBCIEIGf3\nQg==\n-----END PRIVATE KEY-----"

func TestMask(t *testing.T) {
	for name, tt := range map[string]struct {
		secrets  []string
		in, want string
	}{
		"every place":                        {[]string{"hunter22"}, "a hunter22 b hunter22", "a *** b ***"},
		"nothing without secrets":            {nil, "hunter22", "hunter22"},
		"an empty secret hides nothing":      {[]string{""}, "hunter22", "hunter22"},
		"a short one within a text is left":  {[]string{"on"}, "once on", "once on"},
		"a short one that is the whole text": {[]string{"on"}, "on", "***"},
		"the shortest within a text":         {[]string{"1234"}, "pin=1234;", "pin=***;"},
		"as it is written in JSON":           {[]string{"a\"b\\cdef"}, `{"k":"a\"b\\cdef"}`, `{"k":"***"}`},
		"with and without HTML's escapes":    {[]string{`a"<secret>`}, `["a\"<secret>","a\"\u003csecret\u003e"]`, `["***","***"]`},
		"with every character as its number": {[]string{"pässwort😀"}, `"p\u00e4sswort\ud83d\uDE00"`, `"***"`},
		"with slashes escaped":               {[]string{"ab/cd/ef"}, `"ab\/cd\/ef"`, `"***"`},
		"in JSON in JSON":                    {[]string{"a\"b\ncd"}, `{"log":"{\"k\":\"a\\\"b\\ncd\"}"}`, `{"log":"{\"k\":\"***\"}"}`},
		"as Go quotes it":                    {[]string{"a\x01\"bcd"}, `error "a\x01\"bcd"`, `error "***"`},
		"in a URL":                           {[]string{"a+b/c=d e"}, "?k=a%2Bb%2Fc%3Dd+e&l=a%2bb%2fc%3dd%20e", "?k=***&l=***"},
		"a secret inside another":            {[]string{"secret-1", "secret-12"}, "secret-12", "***"},
		"the longer one, however ordered":    {[]string{"secret-12", "secret-1"}, "secret-12 secret-1", "*** ***"},
		"two that overlap":                   {[]string{"abcdef", "defghi"}, "xabcdefghix", "x***x"},
		"all lines of a key":                 {[]string{pem}, pem + "!", "***!"},
		"the lines of a key one by one":      {[]string{pem}, "1: MC4CAQAwBQYDK2Vw\r\n2: BCIEIGf3\r\n3: Qg==", "1: ***\r\n2: ***\r\n3: ***"},
		"a key with other ends of lines":     {[]string{pem}, strings.ReplaceAll(pem, "\n", "\r\n"), "-----BEGIN PRIVATE KEY-----\r\n***\r\n***\r\n***\r\n-----END PRIVATE KEY-----"},
		"a mark that completes a secret":     {[]string{"hunter22", "***x"}, "hunter22x", "***"},
		"cut at the end of the text":         {[]string{"sk-0123456789"}, "token sk-012345", "token ***"},
		"cut before an ellipsis":             {[]string{"sk-0123456789"}, `"sk-012345… (cut)"`, `"***… (cut)"`},
		"cut to next to nothing":             {[]string{"sk-0123456789"}, "sk-0", "sk-0"},
		"made one line":                      {[]string{"one\n\ttwo  three"}, "is one two three", "is ***"},
		"a broken escape":                    {[]string{"abcd"}, `\u00 \x \ud83d abcd \`, `\u00 \x \ud83d *** \`},
	} {
		t.Run(name, func(t *testing.T) {
			m := redact.New(tt.secrets...)
			if got := m.Mask(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOwnersReplaceTheirOwnSecretsOnly(t *testing.T) {
	var m redact.Masker
	m.Set("one", "first-one")
	m.Set("two", "second-one")
	m.Set("one", "third-one")
	if got := m.Mask("first-one second-one third-one"); got != "first-one *** ***" {
		t.Error(got)
	}
	m.Set("one")
	m.Set("two")
	if got := m.Mask("second-one third-one"); got != "second-one third-one" {
		t.Error(got)
	}
	if got := (*redact.Masker)(nil).Mask("x"); got != "x" {
		t.Error(got)
	}
}

// spellings are the ways in which a text may come to stand in another.
var spellings = map[string]func(string) string{
	"plain":        func(s string) string { return s },
	"JSON":         func(s string) string { return inJSON(s) },
	"JSON in JSON": func(s string) string { return inJSON(inJSON(s)) },
	"quoted":       strconv.Quote,
	"query":        url.QueryEscape,
	"path":         url.PathEscape,
}

func inJSON(s string) string {
	raw, err := json.Marshal(map[string]string{"k": s})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func FuzzMask(f *testing.F) {
	f.Add("hunter22", "***x", "before ", " after")
	f.Add("a\"b\\c\nd", "bcd\n", `{"x":"`, `"}`)
	f.Add(pem, "Qg==\n-", "", "")
	f.Add("%41bcd", `\u0041`, `\`, "%4")
	f.Fuzz(func(t *testing.T, one, two, before, after string) {
		m := redact.New(one, two)
		for name, spell := range spellings {
			out := m.Mask(spell(before + one + two + after))
			if again := m.Mask(out); again != out {
				t.Errorf("%s: masked again, %q became %q", name, out, again)
			}
			if len(one) < redact.MinLength || !json.Valid([]byte(inJSON(one))) {
				continue
			}
			texts := []string{out}
			if s, err := strconv.Unquote(out); err == nil {
				texts = append(texts, s)
			}
			for depth := map[string]string{}; json.Unmarshal([]byte(texts[len(texts)-1]), &depth) == nil; depth = map[string]string{} {
				texts = append(texts, depth["k"])
			}
			for _, s := range texts {
				if strings.Contains(s, one) {
					t.Errorf("%s: %q is left in %q, from %q", name, one, s, out)
				}
			}
		}
	})
}

func BenchmarkMask(b *testing.B) {
	line := strings.Repeat("provider github answered 200 to GET https://api.example.com/v1/things in 12 ms; ", 50)
	for _, n := range []int{0, 1, 50} {
		var secrets []string
		for i := range n {
			secrets = append(secrets, fmt.Sprintf("%c%cghp_%032d", 'a'+i%26, 'k'+i%7, i))
		}
		m := redact.New(secrets...)
		for name, text := range map[string]string{"80B": line[:80], "4KiB": line, "4KiB_JSON": inJSON(line + "\n")} {
			b.Run(fmt.Sprintf("secrets=%d/%s", n, name), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					m.Mask(text)
				}
			})
		}
	}
}
