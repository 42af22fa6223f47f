package search

import (
	"cmp"
	"slices"
	"strings"
)

// fusionRank damps the first places of the two orders that are fused: 60 is the constant of reciprocal rank fusion
// (Cormack, Clarke and Büttcher, SIGIR 2009).
const fusionRank = 60

// fuse reorders the best candidates by the sum of the reciprocals of their places by words and by meaning. A tool whose
// meaning is not known has by meaning the place that it has by words.
func (r *run) fuse() {
	best := r.order[:min(len(r.order), r.params.rerank)]
	byMeaning := make([]*candidate, 0, len(best))
	for i, c := range best {
		c.byWords = i + 1
		if c.near, c.known = r.meaning(c.entry.name); c.known {
			byMeaning = append(byMeaning, c)
		}
	}
	if len(byMeaning) == 0 {
		return
	}
	slices.SortFunc(byMeaning, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.near, a.near), strings.Compare(a.entry.name, b.entry.name))
	})
	part := func(place int) float32 { return 1 / float32(fusionRank+place) }
	for _, c := range best {
		c.score = part(c.byWords)
		if !c.known {
			c.score += part(c.byWords)
		}
	}
	for i, c := range byMeaning {
		c.score += part(i + 1)
	}
	slices.SortFunc(best, compare)
}
