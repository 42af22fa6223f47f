package searchtest_test

import (
	"math"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/search"
	"github.com/hermesd/hermesd/search/searchtest"
)

// An agent that may use one server of forty finds what it would find if only that server existed.
func TestAScopeOfOneServerOfFortyIsSearchedAsIfItWereAlone(t *testing.T) {
	set := searchtest.Synthetic()
	services := set.Kinds()
	if len(services) != 40 || len(set.Docs) != 3200 {
		t.Fatalf("%d services with %d tools", len(services), len(set.Docs))
	}
	e, err := search.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	e.Update(set.Docs)
	if err := e.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	corpus := e.Corpus()
	var scoped, alone float64
	for _, service := range services {
		part := set.Of(service)
		prefix := "mcp__" + service + "__"
		within := searchtest.Judge(corpus.Scope(func(name string) bool { return strings.HasPrefix(name, prefix) }), part.Queries)
		only := searchtest.Judge(scopeOf(t, part.Docs), part.Queries)
		if math.Abs(within.Recall5-only.Recall5) > .01 || within.False != only.False {
			t.Errorf("%s: recall@5 %.3f within forty servers, %.3f alone", service, within.Recall5, only.Recall5)
		}
		scoped, alone = scoped+within.Recall5/40, alone+only.Recall5/40
	}
	t.Logf("recall@5 %.3f within forty servers, %.3f alone", scoped, alone)
	if alone < .65 { // half of the queries use other words than the tools
		t.Errorf("recall@5 is %.3f even alone", alone)
	}
}
