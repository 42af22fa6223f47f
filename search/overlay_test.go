package search_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/search"
	"github.com/hermesd/hermesd/search/searchtest"
	"pgregory.net/rapid"
)

var corpus = func() func(testing.TB) *searchtest.Set {
	load := sync.OnceValues(searchtest.Corpus)
	return func(t testing.TB) *searchtest.Set {
		t.Helper()
		s, err := load()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}()

// A base with an overlay must answer as an index that was built from nothing.
func TestBaseAndOverlayAnswerLikeAFreshIndex(t *testing.T) {
	set := corpus(t)
	start := append(manyDocs(250), set.Docs...)
	base := newEngine(t, nil, start...)
	asked, different := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		docs := slices.Clone(start)
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			i := rapid.IntRange(0, len(docs)-1).Draw(t, "which")
			switch rapid.SampledFrom([]string{"change", "remove", "add", "rename"}).Draw(t, "how") {
			case "change":
				docs[i].Description = docs[rapid.IntRange(0, len(docs)-1).Draw(t, "from")].Description + " changed"
			case "remove":
				docs = slices.Delete(docs, i, i+1)
			case "rename":
				docs[i].Name += "_renamed"
			case "add":
				docs = append(docs, search.Document{Name: fmt.Sprintf("mcp__added__tool_%d", len(docs)+i), Source: "added", Description: docs[i].Description})
			}
		}
		base.Update(docs)
		withOverlay := base.Corpus().Scope(nil)
		fresh, err := search.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer fresh.Close()
		fresh.Update(docs) // its base may or may not be there yet: that must make no difference either
		for range 8 {
			q := set.Queries[rapid.IntRange(0, len(set.Queries)-1).Draw(t, "query")]
			query := search.Query{Text: q.Query, Limit: 10}
			want, got := names(fresh.Corpus().Scope(nil).Search(query)), names(withOverlay.Search(query))
			if asked++; !slices.Equal(want, got) {
				different++
				if q.Kind == "names" {
					t.Errorf("%q (-fresh +overlay):\n%s", q.Query, cmp.Diff(want, got))
				}
			}
		}
	})
	if different*100 > asked {
		t.Errorf("%d of %d answers differ from those of a fresh index, want fewer than 1 in 100", different, asked)
	}
}

func TestTheOrderOfTheCatalogMakesNoDifference(t *testing.T) {
	set := corpus(t)
	docs := append(manyDocs(600), set.Docs...)
	a := newEngine(t, nil, docs...)
	slices.Reverse(docs)
	b := newEngine(t, nil, docs...)
	for _, q := range set.Queries {
		query := search.Query{Text: q.Query, Limit: 20, Explain: true}
		if diff := cmp.Diff(a.Corpus().Scope(nil).Search(query), b.Corpus().Scope(nil).Search(query)); diff != "" {
			t.Errorf("%q:\n%s", q.Query, diff)
		}
	}
}

func TestSearchesGoOnWhileTheCatalogChanges(t *testing.T) {
	set := corpus(t)
	docs := append(manyDocs(600), set.Docs...)
	e := newEngine(t, nil, docs...)
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			for n := i; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				q := set.Queries[n%len(set.Queries)]
				for _, h := range e.Corpus().Scope(nil).Search(search.Query{Text: q.Query}).Hits {
					if h.Name == "" {
						t.Error("a hit without a name")
					}
				}
			}
		})
	}
	for i := range 20 {
		changed := slices.Clone(docs)
		changed[i].Description = fmt.Sprint("round ", i)
		e.Update(changed)
		if i%5 == 0 {
			ready(t, e)
		}
	}
	old := e.Corpus()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	close(stop)
	callers.Wait()
	if err := e.Close(); err != nil {
		t.Error("the second Close:", err)
	}
	if got := names(old.Scope(nil).Search(search.Query{Text: "create ticket"})); len(got) == 0 {
		t.Error("a snapshot finds nothing after Close")
	}
}
