package search_test

import (
	"context"
	"fmt"
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
