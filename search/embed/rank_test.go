package embed_test

import (
	"testing"

	"github.com/hermesd/hermesd/search"
	"github.com/hermesd/hermesd/search/embed"
	"github.com/hermesd/hermesd/search/searchtest"
)

// An endpoint that knows what is meant, if not too well, brings the tool further to the front, and harms no exact name.
func TestMeaningImprovesTheRankingAndKeepsExactNamesFirst(t *testing.T) {
	set, err := searchtest.Corpus()
	if err != nil {
		t.Fatal(err)
	}
	meant := map[string]string{} // query -> name of the tool
	var queries []searchtest.Query
	for _, q := range set.Queries {
		if len(q.Relevant) > 0 && q.Kind != "names" && q.Kind != "multi" {
			meant[q.Query] = q.Relevant[0]
			queries = append(queries, q)
		}
	}
	s := newService(t, good(func(text string) []float32 {
		v := direction(text)
		if name, ok := meant[text]; ok {
			for i, x := range direction(name) {
				v[i] = .5*x + .5*v[i]
			}
		}
		return v
	}))
	engine, err := search.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	engine.Update(set.Docs)
	e, _, _ := start(t, embed.Options{URL: s.URL, Timeout: embed.QueryTimeout})
	texts := make([]embed.Text, len(set.Docs))
	names := make([]string, len(set.Docs))
	for i, d := range set.Docs {
		texts[i], names[i] = embed.Text{Name: d.Name, Text: d.Name}, d.Name
	}
	e.Update(texts)
	until(t, "the catalog is embedded", func() bool { return known(e, "q", names...) })

	scope := engine.Corpus().Scope(nil)
	var words, both float64
	place := func(g search.Group, want string) float64 {
		for i, h := range g.Hits {
			if h.Name == want {
				return 1 / float64(i+1)
			}
		}
		return 0
	}
	for _, q := range queries {
		var near []embed.Nearness
		until(t, "the query is embedded", func() bool { near = e.Near(t.Context(), []string{q.Query}); return near != nil })
		plain := scope.Search(search.Query{Text: q.Query, Limit: 10})
		fused := scope.Search(search.Query{Text: q.Query, Limit: 10, Meaning: near[0]})
		if plain.Weak != fused.Weak {
			t.Errorf("%q: weak is %v by words and %v with meaning", q.Query, plain.Weak, fused.Weak)
		}
		words, both = words+place(plain, q.Relevant[0]), both+place(fused, q.Relevant[0])
	}
	n := float64(len(queries))
	t.Logf("MRR %.3f by words, %.3f with meaning", words/n, both/n)
	if both < words+.02*n {
		t.Errorf("MRR %.3f by words, %.3f with meaning", words/n, both/n)
	}
	opposite := func(name string) (float64, bool) { return -float64(len(name)), true }
	for _, d := range set.Docs {
		if g := scope.Search(search.Query{Text: d.Name, Meaning: opposite}); g.Hits[0].Name != d.Name {
			t.Errorf("%s: %s is first", d.Name, g.Hits[0].Name)
		}
	}
}
