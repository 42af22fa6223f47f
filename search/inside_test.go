package search

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func words(text string) []string {
	var out []string
	eachWord(text, func(w string, extra bool) {
		if extra {
			w = "+" + w
		}
		out = append(out, w)
	})
	return out
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"create_issue now":       {"create", "issue", "now"},
		"createPullRequest":      {"create", "pull", "request", "+createpullrequest"},
		"HTTPServer":             {"http", "server", "+httpserver"},
		"GitHub's URLs":          {"git", "hub", "+github", "s", "urls"},
		"OAuth2 iPhone k8s":      {"oauth2", "iphone", "k8s"},
		"s3Bucket":               {"s3", "bucket", "+s3bucket"},
		"Café Ærø straße":        {"cafe", "aero", "strasse"},
		"会議室を":                   {"会議", "議室", "室を"},
		"界":                      {"界"},
		"GitHub上の問題":             {"git", "hub", "+github", "上の", "の問", "問題"},
		"도서관":                    {"도서", "서관"},
		"ПОСЫЛКА, найти":         {"посылка", "наити"},
		"ｆｕｌｌ ﬁne":               {"full", "fine"},
		"🎉 -- \x00\xff ...":      nil,
		"a.b/c:d":                {"a", "b", "c", "d"},
		strings.Repeat("x", 100): {strings.Repeat("x", maxWord)},
	} {
		if diff := cmp.Diff(want, words(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestStems(t *testing.T) {
	for word, want := range map[string]string{
		"issues": "issu", "repositories": "repositori", "PR": "PR", "prs": "pr", "vms": "vm", "css": "css", "ab": "ab", "посылка": "посылка", "k8s": "k8s",
	} {
		if got := stem(word); got != want {
			t.Errorf("stem(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestFirstSentence(t *testing.T) {
	for text, want := range map[string]string{
		"Opens an issue. Needs a title.":             "Opens an issue.",
		"Takes formats, e.g. PDF and so on. Really.": "Takes formats, e.g. PDF and so on.",
		"Version 1.2 of it":                          "Version 1.2 of it",
		"First line\nsecond":                         "First line",
		"会議室を予約します。次に":                               "会議室を予約します",
		"":                                           "",
	} {
		if got, _ := firstSentence(text); got != want {
			t.Errorf("%q begins with %q, want %q", text, got, want)
		}
	}
	if got, rest := firstSentence(strings.Repeat("ä", 1000)); len(got) > maxFirstSentence || got+rest != strings.Repeat("ä", 1000) {
		t.Errorf("a sentence without end is cut at %d bytes", len(got))
	}
}

func walk(schema string) (names, texts []string) {
	walkSchema(json.RawMessage(schema), func(n string) { names = append(names, n) }, func(s string) { texts = append(texts, s) })
	return names, texts
}

func TestParametersOfASchema(t *testing.T) {
	for label, c := range map[string]struct {
		schema       string
		names, texts []string
	}{
		"every level": {`{"type":"object","description":"not of a parameter","properties":{"a":{"description":"A","properties":{"b":{"description":"B"}}},"c":{"items":{"properties":{"d":{}}}}}}`,
			[]string{"a", "b", "c", "d"}, []string{"A", "B"}},
		"alternatives":                          {`{"anyOf":[{"properties":{"x":{}}},{"properties":{"y":{}}}],"$defs":{"t":{"properties":{"z":{}}}}}`, []string{"x", "y", "z"}, nil},
		"a parameter may be called properties":  {`{"properties":{"properties":{"description":"P"},"description":{"type":"string"}}}`, []string{"properties", "description"}, []string{"P"}},
		"what is no schema is skipped":          {`{"properties":{"a":true,"b":[1,{"c":[]}],"d":"x"},"default":{"properties":{"no":{}}}}`, []string{"a", "b", "d"}, nil},
		"broken text gives what stands before":  {`{"properties":{"a":{"description":"A"},"b`, []string{"a"}, []string{"A"}},
		"a description that is no text":         {`{"properties":{"a":{"description":{"x":1}},"b":{}}}`, []string{"a", "b"}, nil},
		"properties that are no object":         {`{"properties":[{"a":{}}],"items":{"properties":{"b":{}}}}`, []string{"b"}, nil},
		"no schema at all":                      {``, nil, nil},
		"a value that is no object":             {`"text"`, nil, nil},
		"the same through $ref is not followed": {`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, nil, nil},
		"null":                                  {`null`, nil, nil},
	} {
		names, texts := walk(c.schema)
		if diff := cmp.Diff([][]string{c.names, c.texts}, [][]string{names, texts}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", label, diff)
		}
	}
}

func TestHostileSchemasAreBounded(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, 20_000) + "1" + strings.Repeat("}}", 20_000)
	if names, _ := walk(deep); len(names) > maxParameters {
		t.Errorf("a deep schema gives %d names", len(names))
	}
	var wide strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&wide, `"p%d":{"description":"%s"},`, i, strings.Repeat("x", 1000))
	}
	names, texts := walk(`{"properties":{` + wide.String() + `"z":{}}}`)
	if len(names) > maxParameters || len(texts) > maxParameters || len(texts[0]) > maxParamText {
		t.Errorf("a wide schema gives %d names, %d texts of %d bytes", len(names), len(texts), len(texts[0]))
	}
}

func TestTheLexiconLoads(t *testing.T) {
	l, err := loadLexicon(nil)
	if err != nil {
		t.Fatal(err)
	}
	for label, n := range map[string]int{"stop words": len(l.stop), "weak words": len(l.weak), "verbs": len(l.verbs), "synonyms": len(l.synonyms), "phrases": len(l.phrases)} {
		if n < 30 {
			t.Errorf("only %d %s", n, label)
		}
	}
	for w := range l.stop {
		if l.verbs[w] != verbNone {
			t.Errorf("%q is a stop word and a verb", w)
		}
		if l.weak[w] {
			t.Errorf("%q is a stop word and a weak one", w)
		}
	}
	if !slices.ContainsFunc(l.synonyms["pr"], func(p phrase) bool { return slices.Equal(p, phrase{"pull", "request"}) }) {
		t.Error("pr is not a pull request")
	}
	if l.verbs["delete"] != verbRemove {
		t.Error("delete does not remove")
	}
}

func TestVocabularyLayers(t *testing.T) {
	v := newVocabulary()
	for i := range 10 {
		v = v.flat().extend()
		for j := range 5 {
			if id := v.add(fmt.Sprint("term", i*5+j)); id != uint32(i*5+j) {
				t.Fatalf("term %d got number %d", i*5+j, id)
			}
		}
		v.add("term0")
	}
	n := 0
	for id := range v.size() {
		term := v.term(uint32(id))
		if got, ok := v.lookup(term); !ok || got != uint32(id) || term != fmt.Sprint("term", id) {
			t.Errorf("term %d is %q and found as %d, %v", id, term, got, ok)
		}
	}
	v.each(func(uint32, string) bool { n++; return true })
	if v.size() != 50 || n != 50 {
		t.Errorf("size %d, %d terms seen, want 50", v.size(), n)
	}
}

func TestOneEdit(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"calendar", "calandar"}: true, {"calendar", "calenda"}: true, {"calendar", "calendars"}: true, {"calendar", "claendar"}: true,
		{"calendar", "calendar"}: true, {"calendar", "clanedar"}: false, {"calendar", "calen"}: false, {"abc", "xyz"}: false,
	} {
		if got := oneEdit(pair[0], pair[1]); got != want || oneEdit(pair[1], pair[0]) != want {
			t.Errorf("%q: %v, want %v", pair, got, want)
		}
	}
}

func TestArgumentsOfAQuery(t *testing.T) {
	for text, want := range map[string]string{
		`Create an issue titled "Login is broken" in acme/app`: "login is broken",
		"open https://example.com/x?y=1 please":                "https example com x y 1",
		"mail bob@example.com about it":                        "bob example com",
		"read /etc/passwd now":                                 "etc passwd",
		"list user's issues, don't wait":                       "",
		"'quoted whole'":                                       "",
		"show ticket 4711 and abc123def456":                    "4711 abc123def456",
		"in group <resource-group> of it":                      "resource group",
	} {
		var got []string
		for _, tok := range tokenize(text) {
			if tok.argument {
				got = append(got, tok.word)
			}
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%q has the arguments %q, want %q", text, g, want)
		}
	}
}

func FuzzSearch(f *testing.F) {
	e, err := New(nil)
	if err != nil {
		f.Fatal(err)
	}
	docs := make([]Document, 600)
	for i := range docs {
		docs[i] = Document{Name: fmt.Sprintf("mcp__s%d__do_thing_%d", i%7, i), Description: "Does thing. 予約 " + fmt.Sprint(i)}
	}
	e.Update(docs)
	if err := e.Ready(f.Context()); err != nil {
		f.Fatal(err)
	}
	scope := e.Corpus().Scope(nil)
	for _, s := range []string{"do thing 7", `"quoted`, "GitHub's “x”", "予約したい", "\xff\xfe", "a. b! c? d: e", "mcp__s1__do_thing_1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, b := scope.Search(Query{Text: text, Explain: true}), scope.Search(Query{Text: text, Explain: true})
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%q has two answers:\n%s", text, diff)
		}
		for i, h := range a.Hits {
			if h.Score != h.Score || i > 0 && h.Name == a.Hits[i-1].Name {
				t.Errorf("%q: hit %d is %+v", text, i, h)
			}
		}
	})
}

func FuzzDocument(f *testing.F) {
	f.Add("mcp__a__b", "b", "Does. More.", `{"properties":{"a":{"description":"x"}}}`)
	f.Add("__", "", "。", `{"properties":{"a":[[[`)
	lex, err := loadLexicon(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name, own, description, schema string) {
		e := newPreparer(lex, newVocabulary()).prepare(&Document{Name: name, OwnName: own, Description: description, Parameters: json.RawMessage(schema)}, 1)
		if !slices.IsSortedFunc(e.terms, func(a, b posting) int { return int(a.term) - int(b.term) }) {
			t.Error("terms are not sorted")
		}
	})
}

func FuzzDecodeForward(f *testing.F) {
	lex, err := loadLexicon(nil)
	if err != nil {
		f.Fatal(err)
	}
	vocab := newVocabulary()
	p := newPreparer(lex, vocab)
	good := forwardFile{key: 1, vocab: vocab, docs: []*entry{
		p.prepare(&Document{Name: "a", Source: "s", Description: "Creates."}, 1), p.prepare(&Document{Name: "b", Description: "Deletes."}, 2),
	}, place: []uint32{1, 0}, files: []indexFile{{"x.zap", 3, 4}}}
	encoded := good.encode()
	if got, err := decodeForward(encoded); err != nil || got.docs[1].name != "b" || !slices.Equal(got.docs[0].terms, good.docs[0].terms) || got.files[0] != good.files[0] {
		f.Fatalf("%+v, %v", got, err)
	}
	f.Add(encoded[:len(encoded)-4])
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := crc32.Checksum(body, castagnoli)
		got, err := decodeForward(append(slices.Clone(body), byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)))
		if err == nil && len(got.place) != len(got.docs) {
			t.Error("a document has no place")
		}
	})
}
