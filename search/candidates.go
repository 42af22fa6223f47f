package search

import (
	"cmp"
	"context"
	"slices"

	index "github.com/blevesearch/bleve_index_api"
)

// maxCandidates is how many documents of the base are ranked.
const maxCandidates = 500

// candidateSet collects what the base's postings say, document by document.
type candidateSet struct {
	score   []float32 // by place in the base
	touched []uint32
	out     []uint32 // places in the corpus
	doc     index.TermFieldDoc
}

// term is a slot with its share of the candidates' score.
type candidateTerm struct {
	term  uint32
	worth float32
	df    uint32
}

// fromBase returns the places in the corpus of the base's best documents within the scope, among them all that bear the
// query as a name.
func (r *run) fromBase(b *base) ([]uint32, error) {
	set, c := &r.found, r.scope.corpus
	set.out = set.out[:0]
	if len(set.score) < len(b.docs) {
		set.score = make([]float32, len(b.docs))
	}
	defer func() {
		for _, d := range set.touched {
			set.score[d] = 0
		}
		set.touched = set.touched[:0]
	}()
	terms := make([]candidateTerm, 0, len(r.q.slots))
	for _, s := range r.q.slots {
		if int(s.term) < b.vocab.size() {
			terms = append(terms, candidateTerm{s.term, s.ask * s.idf, r.df(s.term)})
		}
	}
	slices.SortFunc(terms, func(a, b candidateTerm) int {
		return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.term, b.term))
	})
	for _, t := range terms {
		if err := r.addPostings(b, t); err != nil {
			return nil, err
		}
	}
	for _, ref := range b.names.find(r.q.hash) {
		if ord := c.ordinal[ref.doc]; ord >= 0 && r.scope.contains(uint32(ord)) {
			set.out = append(set.out, uint32(ord))
			set.score[ref.doc] = 0
		}
	}
	best := set.best(maxCandidates)
	for _, d := range best {
		if set.score[d] > 0 {
			set.out = append(set.out, uint32(c.ordinal[d]))
		}
	}
	return set.out, nil
}

// addPostings adds one term's share to the score of every document in the scope that has it.
func (r *run) addPostings(b *base, t candidateTerm) error {
	const saturation = 4
	set, ordinal := &r.found, r.scope.corpus.ordinal
	postings, err := b.reader.TermFieldReader(context.Background(), []byte(b.vocab.term(t.term)), wordsField, true, false, false)
	if err != nil {
		return err
	}
	for {
		doc, err := postings.Next(&set.doc)
		if err != nil || doc == nil {
			if cerr := postings.Close(); err == nil {
				err = cerr
			}
			return err
		}
		d := b.place[doc.ID.Value()]
		if ord := ordinal[d]; ord < 0 || !r.scope.contains(uint32(ord)) {
			continue
		}
		if set.score[d] == 0 {
			set.touched = append(set.touched, d)
		}
		f := float32(doc.Freq)
		set.score[d] += t.worth * f / (f + saturation)
	}
}

// best returns the n touched documents with the highest scores, in no order; equal scores go by place.
func (s *candidateSet) best(n int) []uint32 {
	if len(s.touched) <= n {
		return s.touched
	}
	slices.SortFunc(s.touched, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(s.score[b], s.score[a]), cmp.Compare(a, b))
	})
	return s.touched[:n]
}
