package search

import "slices"

// inform settles what each alternative, concept, slot and sentence is worth.
func (p *parser) inform() {
	p.withoutRepeats()
	for i := range p.q.concepts {
		c := &p.q.concepts[i]
		p.capSynonyms(c)
		c.info = c.weight * p.information(c)
		p.q.total += c.info
		for _, a := range c.alts {
			for _, s := range a.slots {
				p.q.slots[s].ask = max(p.q.slots[s].ask, c.weight*a.weight)
			}
		}
		for k := range maxClauses {
			if c.clauses>>k&1 != 0 {
				p.q.clauseInfo[k] += c.info
				p.q.clauses = max(p.q.clauses, k+1)
			}
		}
	}
}

// own returns the slot of the concept's word itself, if some tool has it.
func (c *concept) own() (uint16, bool) {
	if len(c.alts) > 0 && c.alts[0].weight == 1 {
		return c.alts[0].slots[0], true
	}
	return 0, false
}

// withoutRepeats drops synonyms that the query names itself: one word of a tool must not meet two of the query's.
func (p *parser) withoutRepeats() {
	owner := map[uint16]int{}
	for i := range p.q.concepts {
		if s, ok := p.q.concepts[i].own(); ok {
			owner[s] = i
		}
	}
	for i := range p.q.concepts {
		c := &p.q.concepts[i]
		c.alts = slices.DeleteFunc(c.alts, func(a alternative) bool {
			o, named := owner[a.slots[0]]
			return len(a.slots) == 1 && named && o != i
		})
	}
}

// capSynonyms keeps a rare synonym from counting for more than the word that it stands for.
func (p *parser) capSynonyms(c *concept) {
	own, ok := c.own()
	if !ok {
		return
	}
	limit := p.q.slots[own].idf
	for j, a := range c.alts {
		sum := float32(0)
		for _, s := range a.slots {
			sum += p.q.slots[s].idf
		}
		if sum > limit {
			c.alts[j].weight *= limit / sum
		}
	}
}

// information returns that of a concept's own word; of an unknown word, that of the rarest thing that may stand for it,
// and of a word that nothing may stand for, that of a term that no tool has.
func (p *parser) information(c *concept) float32 {
	if own, ok := c.own(); ok {
		return p.q.slots[own].idf
	}
	if len(c.alts) == 0 {
		return p.idf(0)
	}
	best := float32(0)
	for _, a := range c.alts {
		for _, s := range a.slots {
			best = max(best, p.q.slots[s].idf)
		}
	}
	return best
}
