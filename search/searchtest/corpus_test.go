package searchtest_test

import (
	"context"
	"testing"

	"github.com/hermesd/hermesd/search"
	"github.com/hermesd/hermesd/search/searchtest"
)

func scopeOf(t *testing.T, docs []search.Document) *search.Scope {
	t.Helper()
	e, err := search.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	e.Update(docs)
	if err := e.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	return e.Corpus().Scope(nil)
}

func TestOurOwnCorpusIsSearchedWell(t *testing.T) {
	set, err := searchtest.Corpus()
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Docs) < 300 || len(set.Queries) < 100 {
		t.Fatalf("corpus has %d tools and %d queries", len(set.Docs), len(set.Queries))
	}
	scope := scopeOf(t, set.Docs)
	floors := map[string]float64{"keyword": .97, "natural": .88, "multi": .75, "names": 1, "unicode": 1}
	for kind, floor := range floors {
		var of []searchtest.Query
		for _, q := range set.Queries {
			if q.Kind != kind {
				continue
			}
			of = append(of, q)
			if one := searchtest.Judge(scope, []searchtest.Query{q}); one.Recall5 < 1 {
				g := scope.Search(search.Query{Text: q.Query})
				t.Logf("%s: %q found %v", kind, q.Query, g.Hits)
			}
		}
		if m := searchtest.Judge(scope, of); m.Recall5 < floor || m.NoMatch > .02 {
			t.Errorf("%s: recall@5 %.3f (floor %.2f) over %d queries, without match %.3f", kind, m.Recall5, floor, m.Answerable, m.NoMatch)
		}
	}
	m := searchtest.Judge(scope, set.Queries)
	t.Logf("%+v", m)
	if m.NDCG5 < .8 || m.False > .34 || m.Weak > .25 {
		t.Errorf("all: nDCG@5 %.3f (floor .80), false answers %.2f (at most .34), weak %.2f (at most .25)", m.NDCG5, m.False, m.Weak)
	}
}
