package searchtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hermesd/hermesd/search/searchtest"
)

// perSet is how many queries of a set are asked here; `make bench-search` asks all.
const perSet = 300

// Floors lie a little below what was measured when they were set, with perSet queries of each set.
func TestJudgedSetsAreSearchedWell(t *testing.T) {
	dir := os.Getenv(searchtest.DataEnv)
	if dir == "" {
		t.Skipf("%s is not set: skipped", searchtest.DataEnv)
	}
	floors := map[string]float64{"arcade": .78, "many": .88, "mcptools": .955, "azure": .96}
	var recall, ndcg float64
	for _, name := range append(searchtest.MacroSets(), "many") {
		set, err := searchtest.LoadSet(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		m := searchtest.Judge(scopeOf(t, set.Docs), sample(set.Queries, perSet))
		t.Logf("%s: recall@5 %.3f nDCG@5 %.3f no match %.3f weak %.3f false %.3f", name, m.Recall5, m.NDCG5, m.NoMatch, m.Weak, m.False)
		if m.Recall5 < floors[name] {
			t.Errorf("%s: recall@5 is %.3f, floor %.3f", name, m.Recall5, floors[name])
		}
		if m.NoMatch > .015 {
			t.Errorf("%s: %.3f of the answerable queries have no match", name, m.NoMatch)
		}
		if slices.Contains([]string{"many", "mcptools"}, name) && (m.Weak > .05 || m.False > .15) {
			t.Errorf("%s: weak %.3f (at most .05), false answers %.3f (at most .15)", name, m.Weak, m.False)
		}
		if name != "many" {
			recall += m.Recall5 / float64(len(searchtest.MacroSets()))
			ndcg += m.NDCG5 / float64(len(searchtest.MacroSets()))
		}
	}
	if recall < .82 || ndcg < .75 {
		t.Errorf("macro: recall@5 %.3f (floor .82), nDCG@5 %.3f (floor .75)", recall, ndcg)
	}
}

// sample takes n queries, evenly.
func sample(queries []searchtest.Query, n int) []searchtest.Query {
	if len(queries) <= n {
		return queries
	}
	out := make([]searchtest.Query, 0, n)
	for i := range n {
		out = append(out, queries[i*len(queries)/n])
	}
	return out
}
