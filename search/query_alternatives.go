package search

import (
	"cmp"
	"slices"
)

// alternatives collects what may stand for a word: itself, its synonyms, and for a word that is in no tool its two
// halves and the terms one edit away.
func (p *parser) alternatives(c *concept, t token) {
	c.alts = []alternative{}
	share := p.params.synonym
	if a, ok := p.alternative(1, t.stem); ok {
		c.alts = append(c.alts, a)
	} else {
		share = p.params.onlySynonym
	}
	if t.argument {
		return
	}
	for _, s := range p.lex.synonyms[t.stem] {
		if a, ok := p.alternative(share, s...); ok {
			c.alts = append(c.alts, a)
		}
	}
	if len(c.alts) > 0 && share == p.params.synonym {
		return
	}
	if a, ok := p.split(t.word); ok {
		c.alts = append(c.alts, a)
	} else if len(c.alts) == 0 && len(t.word) >= minFuzzy && isASCII(t.word) && p.misspelt < maxMisspelt {
		p.misspelt++
		p.nearby(c, t.stem)
	}
}

// split finds the halves of an unknown compound: the pair whose rarer half is the most frequent.
func (p *parser) split(word string) (alternative, bool) {
	var best [2]string
	var bestDF uint32
	if len(word) < minCompound || !isASCII(word) {
		return alternative{}, false
	}
	for i := 3; i+3 <= len(word); i++ {
		a, b := stem(word[:i]), stem(word[i:])
		ta, ok := p.known(a)
		if !ok {
			continue
		}
		tb, ok := p.known(b)
		if !ok {
			continue
		}
		if df := min(p.df(ta), p.df(tb)); df > bestDF {
			best, bestDF = [2]string{a, b}, df
		}
	}
	if bestDF == 0 {
		return alternative{}, false
	}
	return p.alternative(p.params.compound, best[:]...)
}

// nearby adds the most frequent terms that are one edit away from an unknown word and begin with the same letter.
func (p *parser) nearby(c *concept, word string) {
	type found struct {
		term string
		df   uint32
	}
	var near []found
	p.vocab.each(func(id uint32, term string) bool {
		if d := len(term) - len(word); -1 <= d && d <= 1 && len(term) > 0 && term[0] == word[0] && oneEdit(term, word) {
			if df := p.df(id); df > 0 {
				near = append(near, found{term, df})
			}
		}
		return true
	})
	slices.SortFunc(near, func(a, b found) int { return cmp.Or(cmp.Compare(b.df, a.df), cmp.Compare(a.term, b.term)) })
	for _, f := range near[:min(len(near), maxFuzzy)] {
		if a, ok := p.alternative(p.params.fuzzy, f.term); ok {
			c.alts = append(c.alts, a)
		}
	}
}

// oneEdit reports whether one insertion, deletion, substitution or exchange of neighbours turns a into b.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if i == len(a) || a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// phrases adds what stands for several words together: "pull request" for "pr", "webhook" for "web hook".
func (p *parser) phrases(tokens []token, at []int) {
	add := func(from, to int, weight float32, stems ...string) {
		if !slices.ContainsFunc(at[from:to], func(c int) bool { return c > 0 }) {
			return
		}
		a, ok := p.alternative(weight, stems...)
		for i := from; i < to && ok; i++ {
			if c := at[i] - 1; c >= 0 {
				p.q.concepts[c].alts = append(p.q.concepts[c].alts, a)
			}
		}
	}
	for i, t := range tokens {
		if t.argument {
			continue
		}
		for _, r := range p.lex.phrases[t.stem] {
			end := i + len(r.phrase)
			if end > len(tokens) || !slices.EqualFunc(tokens[i:end], r.phrase, func(t token, s string) bool { return t.stem == s }) {
				continue
			}
			for _, by := range r.by {
				add(i, end, p.params.synonym, by...)
			}
		}
		if i+1 < len(tokens) && at[i] > 0 && at[i+1] > 0 && !tokens[i+1].argument && len(t.word) > 2 && len(tokens[i+1].word) > 2 && !t.extra {
			add(i, i+2, p.params.compound, stem(t.word+tokens[i+1].word))
		}
	}
}
