package search

import (
	"cmp"
	"math"
	"slices"
)

// linearLimit is the size of a scope up to which every member is scored and no candidates are asked for.
const linearLimit = 500

// Scope is what one agent may see of a corpus, with the statistics of just that. It is immutable; callers keep it for as
// long as view and corpus stay the same.
type Scope struct {
	corpus  *Corpus
	members []uint32 // sorted; nil = the whole corpus
	in      bitset   // of members, for scopes that need candidates
	n       int
	mean    [fields]float32 // length of each field
	dense   []uint32        // document frequency by term, for large scopes
	sparse  []termDF        // the same for small ones, sorted by term
}

type termDF struct{ term, df uint32 }

type bitset []uint64

func (b bitset) has(i uint32) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b bitset) set(i uint32)      { b[i>>6] |= 1 << (i & 63) }
func (b bitset) clear(i uint32)    { b[i>>6] &^= 1 << (i & 63) }

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

// Scope returns what is left of the corpus when only tools for which include answers true are in it; nil means all.
func (c *Corpus) Scope(include func(name string) bool) *Scope {
	if include == nil {
		return c.all
	}
	members := []uint32{}
	for i, e := range c.docs {
		if include(e.name) {
			members = append(members, uint32(i))
		}
	}
	if len(members) == len(c.docs) {
		return c.all
	}
	return newScope(c, slices.Clip(members))
}

// newScope computes the statistics of the members (nil = all documents of c).
func newScope(c *Corpus, members []uint32) *Scope {
	s := &Scope{corpus: c, members: members, n: len(members)}
	if members == nil {
		s.n = len(c.docs)
	}
	var sums [fields]float64
	var all []uint32
	small := s.n <= linearLimit
	if !small {
		s.dense = make([]uint32, c.vocab.size())
		if members != nil {
			s.in = newBitset(len(c.docs))
		}
	}
	for i := range s.n {
		ord := s.ordinal(i)
		e := c.docs[ord]
		for f, l := range e.lengths {
			sums[f] += float64(l)
		}
		if s.in != nil {
			s.in.set(ord)
		}
		for _, t := range e.terms {
			if small {
				all = append(all, t.term)
			} else {
				s.dense[t.term]++
			}
		}
	}
	for f := range sums {
		s.mean[f] = float32(max(sums[f]/float64(max(s.n, 1)), 1))
	}
	if small {
		s.sparse = countTerms(all)
	}
	return s
}

func countTerms(all []uint32) []termDF {
	slices.Sort(all)
	var out []termDF
	for _, t := range all {
		if n := len(out); n > 0 && out[n-1].term == t {
			out[n-1].df++
		} else {
			out = append(out, termDF{t, 1})
		}
	}
	return slices.Clip(out)
}

// Len returns the number of tools in the scope.
func (s *Scope) Len() int { return s.n }

func (s *Scope) ordinal(i int) uint32 {
	if s.members == nil {
		return uint32(i)
	}
	return s.members[i]
}

// contains reports whether the document with that ordinal is in a scope of more than linearLimit tools.
func (s *Scope) contains(ord uint32) bool { return s.in == nil || s.in.has(ord) }

func (s *Scope) df(term uint32) uint32 {
	if s.dense != nil {
		if int(term) < len(s.dense) {
			return s.dense[term]
		}
		return 0
	}
	i, ok := slices.BinarySearchFunc(s.sparse, term, func(t termDF, id uint32) int { return cmp.Compare(t.term, id) })
	if !ok {
		return 0
	}
	return s.sparse[i].df
}

// idf is the information of a term that df of n tools have; it is above zero even for a term that all have.
func idf(df uint32, n int) float32 {
	return float32(math.Log(1 + (float64(n)-float64(df)+.5)/(float64(df)+.5)))
}
