package search

import (
	"cmp"
	"context"
	"slices"

	index "github.com/blevesearch/bleve_index_api"
)

const (
	maxCandidates = 500  // documents of the base that are ranked; up to twice as many when that saves reading common terms
	commonTerm    = 1000 // documents from which on it is worth asking whether a term's postings must be read
	commonShare   = 20   // part of the scope, a twentieth, from which on a term is left out if others weigh far more,
	minorShare    = .3   // that is, if its worth is below this share of the best term's
	typicalShare  = .6   // share of its worth that a term adds to the score of a document it is prominent in
)

// candidateSet collects what the base's postings say, document by document, in the order of bleve's own numbers, in which
// postings come and memory is near.
type candidateSet struct {
	score   []float32 // by number in the index; below zero: not in the scope
	touched []uint32
	out     []uint32 // places in the corpus
	heap    []float32
	doc     index.TermFieldDoc
}

// struck marks a document that changed, went, or is not in the scope.
const struck = -1

// candidateTerm is a slot with its share of the candidates' score.
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
	rest := float32(0) // what the terms not yet read can add to a score
	for _, t := range terms {
		rest += t.worth * typicalShare
	}
	for _, t := range terms {
		if t.df >= commonTerm && len(set.touched) >= maxCandidates {
			if set.enough(rest) {
				break
			}
			if commonShare*float64(t.df) > float64(r.n) && t.worth < terms[0].worth*minorShare {
				rest -= t.worth * typicalShare
				continue
			}
		}
		if err := r.addPostings(b, t); err != nil {
			return nil, err
		}
		rest -= t.worth * typicalShare
	}
	for _, n := range set.choose(b, rest) {
		set.out = append(set.out, uint32(c.ordinal[b.place[n]]))
	}
	for _, ref := range b.names.find(r.q.hash) {
		if ord := c.ordinal[ref.doc]; ord >= 0 && r.scope.contains(uint32(ord)) && !slices.Contains(set.out, uint32(ord)) {
			set.out = append(set.out, uint32(ord))
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
		d := uint32(doc.ID.Value())
		if set.score[d] <= 0 {
			if set.score[d] == struck {
				continue
			}
			set.touched = append(set.touched, d)
			if ord := ordinal[b.place[d]]; ord < 0 || !r.scope.contains(uint32(ord)) {
				set.score[d] = struck
				continue
			}
		}
		f := float32(doc.Freq)
		set.score[d] += t.worth * f / (f + saturation)
	}
}

// floor returns the score of the last document that is among the best maxCandidates, or 0 if there are fewer.
func (s *candidateSet) floor() float32 {
	if len(s.touched) < maxCandidates {
		return 0
	}
	// A heap of the best scores with the smallest on top.
	h := s.heap[:0]
	for _, d := range s.touched {
		v := s.score[d]
		switch {
		case len(h) < maxCandidates:
			h = append(h, v)
			for i := len(h) - 1; i > 0 && h[i] < h[(i-1)/2]; i = (i - 1) / 2 {
				h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
			}
		case v > h[0]:
			h[0] = v
			for i := 0; ; {
				child := 2*i + 1
				if child+1 < len(h) && h[child+1] < h[child] {
					child++
				}
				if child >= len(h) || h[i] <= h[child] {
					break
				}
				h[i], h[child] = h[child], h[i]
				i = child
			}
		}
	}
	s.heap = h
	return h[0]
}

// choose returns the documents that may be among the best when rest can still be added to any score. Of more than
// twice maxCandidates it keeps the best, equal ones by place.
func (s *candidateSet) choose(b *base, rest float32) []uint32 {
	floor := s.floor() - max(rest, 0)
	s.touched = slices.DeleteFunc(s.touched, func(d uint32) bool {
		if s.score[d] > 0 && s.score[d] >= floor {
			return false
		}
		s.score[d] = 0
		return true
	})
	if len(s.touched) > 2*maxCandidates {
		slices.SortFunc(s.touched, func(x, y uint32) int {
			return cmp.Or(cmp.Compare(s.score[y], s.score[x]), cmp.Compare(b.place[x], b.place[y]))
		})
		return s.touched[:2*maxCandidates]
	}
	return s.touched
}

// enough reports whether the terms not yet read cannot bring a document in that none of the others has, and leave few
// enough documents to be told apart by the forward index.
func (s *candidateSet) enough(rest float32) bool {
	floor := s.floor()
	if rest >= floor {
		return false
	}
	n := 0
	for _, d := range s.touched {
		if s.score[d] >= floor-rest {
			n++
		}
	}
	return n <= 2*maxCandidates
}
