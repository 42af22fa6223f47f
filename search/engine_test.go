package search_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/search"
)

// newEngine returns an engine that holds docs and whose base is complete.
func newEngine(t testing.TB, opts *search.Options, docs ...search.Document) *search.Engine {
	t.Helper()
	e, err := search.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	e.Update(docs)
	ready(t, e)
	return e
}

func ready(t testing.TB, e *search.Engine) {
	t.Helper()
	if err := e.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func names(g search.Group) []string {
	out := []string{}
	for _, h := range g.Hits {
		out = append(out, h.Name)
	}
	return out
}

func manyDocs(n int) []search.Document {
	docs := make([]search.Document, n)
	for i := range docs {
		docs[i] = search.Document{
			Name: fmt.Sprintf("mcp__s%d__make_thing_%d", i%10, i), Source: fmt.Sprintf("s%d", i%10),
			Description: fmt.Sprintf("Makes thing number %d.", i),
		}
	}
	return docs
}

func TestAChangedToolIsFoundByTheNextSearch(t *testing.T) {
	for _, n := range []int{3, 700} {
		docs := manyDocs(n)
		e := newEngine(t, nil, docs...)
		docs[1].Description = "Frobnicates a widget."
		e.Update(docs)
		got := names(e.Corpus().Scope(nil).Search(search.Query{Text: "frobnicate widget"}))
		if len(got) == 0 || got[0] != docs[1].Name {
			t.Errorf("%d tools: found %q before the base was rebuilt, want %q first", n, got, docs[1].Name)
		}
		ready(t, e)
		got = names(e.Corpus().Scope(nil).Search(search.Query{Text: "frobnicate widget"}))
		if len(got) == 0 || got[0] != docs[1].Name {
			t.Errorf("%d tools: found %q after the base was rebuilt, want %q first", n, got, docs[1].Name)
		}
		e.Update(append(docs[:1:1], docs[2:]...))
		if got := names(e.Corpus().Scope(nil).Search(search.Query{Text: "frobnicate widget"})); len(got) > 0 && got[0] == docs[1].Name {
			t.Errorf("%d tools: a removed tool is still found", n)
		}
	}
}

func TestACatalogMayBecomeEmptyAndComeBack(t *testing.T) {
	docs := manyDocs(700)
	e := newEngine(t, nil, docs...)
	for range 3 {
		e.Update(nil)
		if g := e.Corpus().Scope(nil).Search(search.Query{Text: "make thing"}); len(g.Hits) > 0 || !g.Weak {
			t.Errorf("an empty catalog found %v", g)
		}
		e.Update(docs[:600])
		e.Update(docs)
		if got := names(e.Corpus().Scope(nil).Search(search.Query{Text: "thing 77"})); got[0] != docs[77].Name {
			t.Errorf("found %q, want %q first", got, docs[77].Name)
		}
	}
	ready(t, e)
	if got := names(e.Corpus().Scope(nil).Search(search.Query{Text: "thing 77"})); got[0] != docs[77].Name {
		t.Errorf("found %q, want %q first", got, docs[77].Name)
	}
}

func TestOfTwoToolsWithOneNameTheLaterCounts(t *testing.T) {
	e := newEngine(t, nil, search.Document{Name: "a", Description: "Walks."}, search.Document{Name: "a", Description: "Swims."}, search.Document{Description: "Has no name."})
	scope := e.Corpus().Scope(nil)
	if scope.Len() != 1 {
		t.Errorf("%d tools", scope.Len())
	}
	if got := names(scope.Search(search.Query{Text: "swims"})); len(got) != 1 {
		t.Errorf("found %q", got)
	}
}

func TestRankWritesALineForEachQuery(t *testing.T) {
	catalog := `{"name":"a__create_issue","description":"Open an issue.","parameters":{},"source":"a"}
{"name":"b__play_song","description":"Play music.","source":"b"}
`
	queries := `{"query":"open an issue","relevant":["a__create_issue"]}

{"query":"<play> a song"}
`
	var out strings.Builder
	if err := search.Rank(t.Context(), &out, strings.NewReader(catalog), strings.NewReader(queries), nil); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], `{"query":"open an issue","matches":[{"name":"a__create_issue","weak":false}],"weak":false,"micros":`) ||
		!strings.HasPrefix(lines[1], `{"query":"<play> a song","matches":[{"name":"b__play_song"`) {
		t.Errorf("wrote %s", out.String())
	}
	for what, files := range map[string][2]string{
		"catalog line 2": {catalog[:strings.Index(catalog, "\n")] + "\n{", queries}, "catalog line 1": {`{"description":"x"}`, queries}, "queries line 1": {catalog, "nonsense"},
	} {
		err := search.Rank(t.Context(), io.Discard, strings.NewReader(files[0]), strings.NewReader(files[1]), nil)
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v does not name %s", err, what)
		}
	}
}
