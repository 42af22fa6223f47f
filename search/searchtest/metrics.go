package searchtest

import (
	"math"
	"slices"

	"github.com/hermesd/hermesd/search"
)

// Metrics are averages over the queries of a set. Recall at k is the share of a query's needs that the first k hits
// meet; nDCG at 5 has gain 1 for each newly met need.
type Metrics struct {
	Answerable, Unanswerable int

	Recall1, Recall5, NDCG5 float64
	NoMatch                 float64 // share of answerable queries without any hit
	Weak                    float64 // share of answerable queries whose answer is marked weak
	False                   float64 // share of unanswerable queries with a hit that is not marked weak
}

// Add adds another query's answer. Done must follow the last.
func (m *Metrics) Add(q *Query, g search.Group) {
	if len(q.Relevant) == 0 {
		m.Unanswerable++
		if len(g.Hits) > 0 && !g.Weak {
			m.False++
		}
		return
	}
	m.Answerable++
	switch {
	case len(g.Hits) == 0:
		m.NoMatch++
	case g.Weak:
		m.Weak++
	}
	needs := q.Needs()
	met := make([]int, len(needs)) // rank, from 1
	dcg, ideal := 0.0, 0.0
	for i, h := range g.Hits {
		k := -1
		for j, need := range needs {
			if met[j] == 0 && slices.Contains(need, h.Name) {
				k = j
				break
			}
		}
		if k < 0 {
			continue
		}
		met[k] = i + 1
		if i < 5 {
			dcg += 1 / math.Log2(float64(i+2))
		}
	}
	for i := range min(5, len(needs)) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	within := func(k int) float64 {
		n := 0.0
		for _, rank := range met {
			if rank > 0 && rank <= k {
				n++
			}
		}
		return n / float64(len(needs))
	}
	m.Recall1 += within(1)
	m.Recall5 += within(5)
	m.NDCG5 += dcg / ideal
}

// Done turns sums into averages.
func (m *Metrics) Done() {
	n, none := float64(max(m.Answerable, 1)), float64(max(m.Unanswerable, 1))
	for _, v := range []*float64{&m.Recall1, &m.Recall5, &m.NDCG5, &m.NoMatch, &m.Weak} {
		*v /= n
	}
	m.False /= none
}

// Judge asks every query of the set in the scope.
func Judge(s *search.Scope, queries []Query) Metrics {
	var m Metrics
	for i := range queries {
		m.Add(&queries[i], s.Search(search.Query{Text: queries[i].Query, Limit: 10}))
	}
	m.Done()
	return m
}
