package searchtest_test

import (
	"path/filepath"
	"testing"

	"github.com/hermesd/hermesd/internal/bench/bars"
	"github.com/hermesd/hermesd/internal/testenv"
	"github.com/hermesd/hermesd/search"
	"github.com/hermesd/hermesd/search/searchtest"
)

// The bars of quality hold as they stand: a ranking is the same on every machine. That of 100,000 tools takes too long for
// a test; `make bars` has it.
func TestJudgedSetsAreSearchedAsWellAsPromised(t *testing.T) {
	dir := testenv.Data(t)
	if raced {
		t.Skip("the race detector takes minutes over it and changes no ranking; .ci/run has it without")
	}
	var recall, ndcg, worst float64
	var keyword searchtest.Metrics
	judged := map[string]searchtest.Metrics{}
	macro := searchtest.MacroSets()
	for _, name := range append(macro, "many") {
		set, err := searchtest.LoadSet(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		scope := scopeOf(t, set.Docs)
		m := searchtest.Judge(scope, set.Queries)
		t.Logf("%s: recall@5 %.3f nDCG@5 %.3f no match %.3f weak %.3f false %.3f", name, m.Recall5, m.NDCG5, m.NoMatch, m.Weak, m.False)
		judged[name], worst = m, max(worst, m.NoMatch)
		if name == "many" {
			continue
		}
		recall += m.Recall5 / float64(len(macro))
		ndcg += m.NDCG5 / float64(len(macro))
		for i := range set.Queries {
			if q := &set.Queries[i]; q.Kind == "keyword" && len(q.Relevant) > 0 {
				keyword.Add(q, scope.Search(search.Query{Text: q.Query, Limit: 10}))
			}
		}
	}
	keyword.Done()
	readings := bars.Readings{
		{Benchmark: "Search/macro", Unit: "recall@5"}:   recall,
		{Benchmark: "Search/macro", Unit: "nDCG@5"}:     ndcg,
		{Benchmark: "Search/keyword", Unit: "recall@5"}: keyword.Recall5,
		{Benchmark: "Search/many", Unit: "recall@5"}:    judged["many"].Recall5,
		{Benchmark: "Search/arcade", Unit: "recall@5"}:  judged["arcade"].Recall5,
		{Benchmark: "Search/worst", Unit: "no-match"}:   worst,
		{Benchmark: "Search/many", Unit: "false"}:       judged["many"].False,
		{Benchmark: "Search/many", Unit: "weak"}:        judged["many"].Weak,
		{Benchmark: "Search/mcptools", Unit: "weak"}:    judged["mcptools"].Weak,
	}
	for _, missed := range readings.Missed() {
		t.Error(missed)
	}
}
