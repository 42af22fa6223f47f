package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on one query.
const (
	maxQueryBytes = 10_000 // what follows is not read
	maxConcepts   = 96     // the most informative words of longer queries
	maxSlots      = 1024   // different terms looked for, synonyms included
	maxPhrase     = 4      // words of a phrase in the lexicon
	minFuzzy      = 6      // letters of a word that is searched with one edit
	maxFuzzy      = 4      // terms that one misspelt word may stand for
	maxClauses    = 8      // sentences that are told apart; the last takes the rest
	minCompound   = 6      // letters of a word that is split in two
)

// token is one word of a query.
type token struct {
	word     string
	stem     string
	argument bool // quoted, a number, an address, a path: the value of an argument, not a description of a tool
	name     bool // capitalised within a sentence
	clause   int  // sentence of the query, from 0
	extra    bool // part of a camelCase run that is itself a term
}

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

// tokenize splits a query into words and tells arguments from descriptions.
func tokenize(text string) []token {
	var tokens []token
	var quote rune
	sentenceStart := true
	clause := 0
	for _, chunk := range strings.Fields(text) {
		closing := quote
		if quote == 0 {
			if q, ok := opensQuote(chunk); ok && strings.ContainsRune(text, q) {
				quote, closing = q, q
			}
		}
		inQuote := quote != 0
		if inQuote && closesQuote(chunk, closing) {
			quote = 0
		}
		first, _ := utf8.DecodeRuneInString(strings.TrimLeft(chunk, `"'“‘([`))
		name := !sentenceStart && unicode.IsUpper(first)
		argument := inQuote || isAddress(chunk)
		begin := len(tokens)
		if begin > 0 && sentenceStart {
			clause = min(clause+1, maxClauses-1)
		}
		eachWord(chunk, func(word string, extra bool) {
			if extra {
				// The parts stand just before the run that they make up.
				n := 0
				for i := len(tokens) - 1; i >= begin && n < len(word); i-- {
					tokens[i].extra = true
					n += len(tokens[i].word)
				}
			}
			tokens = append(tokens, token{word: word, stem: stem(word), argument: argument || isIdentifier(word), name: name, clause: clause})
		})
		sentenceStart = strings.HasSuffix(chunk, ".") || strings.HasSuffix(chunk, "?") || strings.HasSuffix(chunk, "!") || strings.HasSuffix(chunk, ":")
	}
	if quote != 0 || allArguments(tokens) { // never closed, or nothing else: no quotation
		for i := range tokens {
			tokens[i].argument = isIdentifier(tokens[i].word) && len(tokens) > 1
		}
	}
	return tokens
}

func allArguments(tokens []token) bool {
	return !slices.ContainsFunc(tokens, func(t token) bool { return !t.argument })
}

var quotes = map[rune]rune{'"': '"', '\'': '\'', '“': '”', '‘': '’', '`': '`', '«': '»', '<': '>', '「': '」'}

// opensQuote reports whether a quotation begins with this chunk, and the rune that closes it.
func opensQuote(chunk string) (rune, bool) {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(chunk, "([{"))
	q, ok := quotes[r]
	return q, ok
}

func closesQuote(chunk string, q rune) bool {
	chunk = strings.TrimRight(chunk, ".,;:!?)]}")
	if i := strings.LastIndex(chunk, string(q)); i >= 0 {
		rest := chunk[i+len(string(q)):]
		return i > 0 && (rest == "" || rest == "s" || q != '\'')
	}
	return false
}

// isAddress reports whether a chunk is a URL, a mail address or a path.
func isAddress(chunk string) bool {
	chunk = strings.Trim(chunk, `"'()[]<>,;`)
	switch {
	case strings.Contains(chunk, "://"), strings.HasPrefix(chunk, "www."):
		return true
	case strings.HasPrefix(chunk, "/"), strings.HasPrefix(chunk, "~/"), strings.HasPrefix(chunk, "./"), strings.HasPrefix(chunk, `\\`):
		return len(chunk) > 2
	case len(chunk) > 3 && chunk[1] == ':' && chunk[2] == '\\':
		return true
	}
	at := strings.IndexByte(chunk, '@')
	return at > 0 && strings.IndexByte(chunk[at:], '.') > 0
}

// isIdentifier reports whether a word is a number or the like of a key: digits only, or long and mixed.
func isIdentifier(word string) bool {
	digits := 0
	for i := range len(word) {
		if isDigit(word[i]) {
			digits++
		}
	}
	return digits == len(word) && digits > 0 || digits >= 2 && len(word) >= 6 || digits >= 1 && len(word) >= 12
}

// parser resolves the words of a query within a scope.
type parser struct {
	lex    *lexicon
	vocab  *vocabulary
	params *params
	df     func(term uint32) uint32
	idf    func(df uint32) float32
	q      *parsedQuery
	slotOf map[uint32]uint16
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
	} else if len(c.alts) == 0 && len(t.word) >= minFuzzy && isASCII(t.word) {
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
	add := func(from, to int, a alternative) {
		for i := from; i < to; i++ {
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
				if a, ok := p.alternative(p.params.synonym, by...); ok {
					add(i, end, a)
				}
			}
		}
		if i+1 < len(tokens) && at[i] > 0 && at[i+1] > 0 && !tokens[i+1].argument && len(t.word) > 2 && len(tokens[i+1].word) > 2 && !t.extra {
			if a, ok := p.alternative(p.params.compound, stem(t.word+tokens[i+1].word)); ok {
				add(i, i+2, a)
			}
		}
	}
}
