package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// match says how strongly one slot stands in a candidate: the weighted, length-normalised frequency over its fields.
type match struct {
	slot uint16
	freq float32
}

// candidate is a document under consideration.
type candidate struct {
	entry     *entry
	extra     bool
	grade     int
	from, to  int // its matches
	first     float32
	met       float32 // share of the query's information, 0..1
	score     float32
	second    secondPass
	near      float64             // in meaning
	known     bool                // near is
	byWords   int                 // its place by words, from 1; 0 where meaning was not asked
	clauses   [maxClauses]float32 // score for each sentence of the query alone
	clauseMet [maxClauses]float32
}

// secondPass holds the parts of the second pass, for the explanation.
type secondPass struct {
	name, verb, source, pair, coverage, usage float32
}

// gather appends a candidate with its matches.
func (r *run) gather(e *entry, extra bool) {
	from := len(r.matches)
	var scale [fields]float32
	ready := false
	for _, t := range e.terms {
		if !r.wanted.has(t.term) {
			continue
		}
		if !ready {
			for f := range scale {
				b := r.params.norm[f]
				scale[f] = r.params.weight[f] / (1 - b + b*float32(e.lengths[f])/r.scope.mean[f])
			}
			ready = true
		}
		freq := float32(0)
		for f := range scale {
			if n := t.freq.get(f); n > 0 {
				freq += float32(n) * scale[f]
			}
		}
		r.matches = append(r.matches, match{r.slotOf[t.term], freq})
	}
	grade := e.gradeName(r.q.text, r.q.hash)
	if from == len(r.matches) && grade == gradeNone {
		return
	}
	r.cands = append(r.cands, candidate{entry: e, extra: extra, grade: grade, from: from, to: len(r.matches)})
}

// firstPass scores a candidate by BM25F; a concept counts by the best of what stands for it.
func (r *run) firstPass(c *candidate) {
	for _, m := range r.matches[c.from:c.to] {
		r.satur[m.slot] = m.freq / (m.freq + r.params.k1) * r.q.slots[m.slot].idf
		r.hit[m.slot] = true
	}
	met := float32(0)
	for i := range r.q.concepts {
		q := &r.q.concepts[i]
		best, share := float32(0), float32(0)
		for _, a := range q.alts {
			sum, all := float32(0), true
			for _, s := range a.slots {
				if !r.hit[s] {
					all = false
					break
				}
				sum += r.satur[s]
			}
			if all {
				best = max(best, a.weight*sum)
				share = max(share, a.weight)
			}
		}
		c.first += q.weight * best
		met += q.info * min(share, 1)
		for k := 0; r.q.clauses > 1 && k < r.q.clauses; k++ {
			if q.clauses>>k&1 != 0 {
				c.clauses[k] += q.weight * best
				c.clauseMet[k] += q.info * min(share, 1)
			}
		}
	}
	if r.q.total > 0 {
		c.met = met / r.q.total
	}
	for _, m := range r.matches[c.from:c.to] {
		r.satur[m.slot], r.hit[m.slot] = 0, false
	}
}

// secondPass asks how much of the tool the query names.
func (r *run) secondPass(c *candidate) {
	e, p := c.entry, r.params
	asked := func(term uint32) float32 {
		if !r.wanted.has(term) {
			return 0
		}
		return min(r.q.slots[r.slotOf[term]].ask, 1)
	}
	var got, all float32
	for i, t := range e.nameSeq {
		if slices.Contains(e.nameSeq[:i], t) {
			continue
		}
		info := r.idf(r.df(t))
		got, all = got+info*asked(t), all+info
	}
	if all > 0 {
		c.second.name = p.nameShare * got / all
	}
	if r.q.verb != verbNone && e.verb != verbNone {
		if r.q.verb == e.verb {
			c.second.verb = p.verbSame
		} else {
			c.second.verb = -p.verbOther
		}
	}
	if len(e.srcSeq) > 0 && !slices.ContainsFunc(e.srcSeq, func(t uint32) bool { return asked(t) < .5 }) && r.idf(r.df(e.srcSeq[0])) > .1 {
		c.second.source = p.source
	}
	c.second.pair = p.pair * float32(r.pairs(e.nameSeq))
	c.second.coverage = r.power(c.met)
	factor := (1 + c.second.name + c.second.verb + c.second.source + c.second.pair) * p.nameGrade[c.grade]
	c.score = c.first * factor * c.second.coverage
	if r.q.clauses > 1 {
		for k, info := range r.q.clauseInfo[:r.q.clauses] {
			if info > 0 {
				c.clauses[k] *= factor * r.power(c.clauseMet[k]/info)
			}
		}
	}
	if r.usage != nil {
		c.second.usage = r.usage(e.name)
		c.score *= 1 + c.second.usage
	}
}

func (r *run) power(met float32) float32 {
	return float32(math.Pow(float64(met), float64(r.params.coverage)))
}

// byClause mixes into the scores how well each tool serves the sentence of the query that it serves best, so that a query
// that asks for several things finds a tool for each.
func (r *run) byClause(best []*candidate) {
	info := r.q.clauseInfo[:r.q.clauses]
	fullest := slices.Max(info)
	var top [maxClauses]float32
	full := float32(0)
	for _, c := range best {
		full = max(full, c.score)
		for k := range info {
			top[k] = max(top[k], c.clauses[k])
		}
	}
	for k, in := range info {
		if in <= fullest*r.params.clauseMin {
			top[k] = 0
		} else if top[k] > 0 {
			top[k] = full * float32(math.Pow(float64(in/fullest), float64(r.params.clauseInfo))) / top[k]
		}
	}
	for _, c := range best {
		part := float32(0)
		for k := range info {
			part = max(part, c.clauses[k]*top[k])
		}
		c.score += r.params.clause * (part - c.score)
	}
}

// pairs counts the neighbouring words of the query that are neighbours in a name too, each once.
func (r *run) pairs(name []uint32) int {
	n := 0
	for i := 1; i < len(r.q.concepts); i++ {
		a, known := r.q.concepts[i-1].own()
		b, alsoKnown := r.q.concepts[i].own()
		if !known || !alsoKnown {
			continue
		}
		first, second := r.q.slots[a].term, r.q.slots[b].term
		for j := 1; j < len(name); j++ {
			if name[j-1] == first && name[j] == second {
				n++
				break
			}
		}
	}
	return n
}

// compare orders candidates: exact names, then scores, then names.
func compare(a, b *candidate) int {
	if x, y := max(a.grade, gradeFull), max(b.grade, gradeFull); x != y {
		return y - x
	}
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return strings.Compare(a.entry.name, b.entry.name)
}
