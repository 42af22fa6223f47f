package search

import (
	"cmp"
	"slices"
	"strings"
)

// Bounds on one query.
const (
	maxQueryBytes = 10_000 // what follows is not read
	maxConcepts   = 96     // the most informative words of longer queries
	maxSlots      = 1024   // different terms looked for, synonyms included
	maxPhrase     = 4      // words of a phrase in the lexicon
	minFuzzy      = 6      // letters of a word that is searched with one edit
	maxMisspelt   = 8      // words of a query that are searched so, since each reads the whole vocabulary
	maxFuzzy      = 4      // terms that one misspelt word may stand for
	maxClauses    = 8      // sentences that are told apart; the last takes the rest
	minCompound   = 6      // letters of a word that is split in two
)

// slot is one term that is looked for.
type slot struct {
	term uint32
	idf  float32
	ask  float32 // the best weight with which any concept asks for it
}

// concept is one word of the query with everything that may stand for it.
type concept struct {
	word    string
	weight  float32
	info    float32 // weight x information
	clauses uint32  // sentences it stands in, a bit each
	alts    []alternative
}

// alternative is a term, or a phrase all of whose terms must be there, that meets a concept to a degree.
type alternative struct {
	slots  []uint16
	weight float32
}

// parsedQuery is a query in the terms of one scope.
type parsedQuery struct {
	text       string // trimmed
	hash       uint64 // of the text as a name
	concepts   []concept
	slots      []slot
	verb       verbClass
	total      float32             // information of all concepts
	clauses    int                 // sentences
	clauseInfo [maxClauses]float32 // information of each
}

// parser resolves the words of a query within a scope.
type parser struct {
	lex      *lexicon
	vocab    *vocabulary
	params   *params
	df       func(term uint32) uint32
	idf      func(df uint32) float32
	q        *parsedQuery
	slotOf   map[uint32]uint16
	misspelt int // words that were searched with one edit
}

// known returns a stem's term if any tool in the scope has it.
func (p *parser) known(stem string) (term uint32, ok bool) {
	term, ok = p.vocab.lookup(stem)
	return term, ok && p.df(term) > 0
}

func (p *parser) slot(term uint32) (uint16, bool) {
	if s, ok := p.slotOf[term]; ok {
		return s, true
	}
	if len(p.q.slots) == maxSlots {
		return 0, false
	}
	s := uint16(len(p.q.slots))
	p.q.slots = append(p.q.slots, slot{term: term, idf: p.idf(p.df(term))})
	p.slotOf[term] = s
	return s, true
}

// alternative makes one from stems, or reports that some stem is in no tool.
func (p *parser) alternative(weight float32, stems ...string) (alternative, bool) {
	a := alternative{weight: weight}
	for _, s := range stems {
		term, ok := p.known(s)
		if !ok {
			return a, false
		}
		slot, ok := p.slot(term)
		if !ok {
			return a, false
		}
		a.slots = append(a.slots, slot)
	}
	return a, true
}

// weigh gives each token the share of its weight that cleaning leaves; 0 drops it.
func (p *parser) weigh(tokens []token) []float32 {
	weights := make([]float32, len(tokens))
	kept := false
	for i, t := range tokens {
		w := float32(1)
		_, known := p.known(t.stem)
		switch {
		case p.lex.stop[t.word]:
			w = 0
		case t.argument:
			w = p.params.argument
		case t.name && !known && len(tokens) > maxPhrase:
			w = p.params.unknownName
		case p.lex.weak[t.word]:
			w = p.params.weak
		}
		if t.extra && w > 0 && p.runKnown(tokens, i) {
			w *= p.params.camelPart
		}
		weights[i] = w
		kept = kept || w > 0
	}
	if !kept { // only stop words: better than nothing
		for i := range weights {
			weights[i] = p.params.weak
		}
	}
	return weights
}

// runKnown reports whether the camelCase run that token i is part of is itself a term.
func (p *parser) runKnown(tokens []token, i int) bool {
	for i < len(tokens) && tokens[i].extra {
		i++
	}
	if i == len(tokens) {
		return false
	}
	_, ok := p.known(tokens[i].stem)
	return ok
}

// parse fills p.q from the text.
func (p *parser) parse(text string) {
	text = strings.TrimSpace(cut(strings.ToValidUTF8(text, " "), maxQueryBytes))
	p.q.text, p.q.hash = text, nameHash(text)
	tokens := tokenize(text)
	weights := p.weigh(tokens)
	seen := map[string]int{}
	at := make([]int, len(tokens)) // token -> concept + 1
	for i, t := range tokens {
		if weights[i] == 0 {
			continue
		}
		if p.q.verb == verbNone && !t.argument {
			p.q.verb = p.lex.verbs[t.word]
		}
		if c, ok := seen[t.stem]; ok {
			p.q.concepts[c].weight = max(p.q.concepts[c].weight, weights[i])
			p.q.concepts[c].clauses |= 1 << t.clause
			at[i] = c + 1
			continue
		}
		seen[t.stem] = len(p.q.concepts)
		p.q.concepts = append(p.q.concepts, concept{word: t.word, weight: weights[i], clauses: 1 << t.clause})
		at[i] = len(p.q.concepts)
	}
	p.shorten(tokens, at)
	for i, t := range tokens {
		if c := at[i] - 1; c >= 0 && p.q.concepts[c].alts == nil {
			p.alternatives(&p.q.concepts[c], t)
		}
	}
	p.phrases(tokens, at)
	p.inform()
}

// shorten keeps the most informative concepts of a long query.
func (p *parser) shorten(tokens []token, at []int) {
	if len(p.q.concepts) <= maxConcepts {
		return
	}
	type ranked struct {
		c    int
		info float32
	}
	order := make([]ranked, len(p.q.concepts))
	for i, t := range tokens {
		if c := at[i] - 1; c >= 0 {
			term, ok := p.known(t.stem)
			order[c] = ranked{c, 0}
			if ok {
				order[c].info = p.q.concepts[c].weight * p.idf(p.df(term))
			}
		}
	}
	slices.SortStableFunc(order, func(a, b ranked) int { return cmp.Compare(b.info, a.info) })
	keep := order[:maxConcepts]
	slices.SortFunc(keep, func(a, b ranked) int { return cmp.Compare(a.c, b.c) })
	moved := make([]int, len(p.q.concepts))
	concepts := make([]concept, 0, maxConcepts)
	for _, k := range keep {
		concepts = append(concepts, p.q.concepts[k.c])
		moved[k.c] = len(concepts)
	}
	for i := range at {
		if at[i] > 0 {
			at[i] = moved[at[i]-1]
		}
	}
	p.q.concepts = concepts
}
