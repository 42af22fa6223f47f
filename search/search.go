package search

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// Query is one question to a scope.
type Query struct {
	Text  string // the first 10,000 bytes count
	Limit int    // most hits to return; default 5

	// Extra are tools from elsewhere (hosted connectors) that are ranked in the same pass but are no part of the corpus.
	Extra []Document

	// Usage returns what was learned about a tool for queries like this one, as a share of a lexical match that is cut
	// to 0..1; nil means nothing. It never lifts a tool above an exact name.
	Usage func(name string) float64

	// Meaning returns how near a tool's meaning is to the query's, as a cosine, and false where that is not known; nil
	// means that nothing is known. The best tools by words are reordered by both; exact names stay first, and whether an
	// answer is weak is decided by words alone.
	Meaning func(name string) (nearness float64, known bool)

	// Synonyms are those of who asks; nil is the engine's own.
	Synonyms *Synonyms

	Explain bool // say for each hit why it ranks where it does
}

// Group is the answer to one query.
type Group struct {
	Hits []Hit

	// Weak says that the best hit meets too small a share of the query's information: the hits are only the nearest.
	Weak bool

	// Met is the share of the query's information that the fullest of the first five hits meets, 0..1, and Line the share below which an answer
	// to this query is weak, unless a hit's name is the query.
	Met, Line float64
}

// Hit is one tool of an answer.
type Hit struct {
	Name    string
	Score   float64 // comparable within one answer only
	Extra   bool    // it came with the query, not from the corpus
	Explain *Explanation
}

const defaultLimit = 5

// run is one search.
type run struct {
	*scratch
	scope   *Scope
	params  *params
	q       *parsedQuery
	vocab   *vocabulary
	n       int
	extraDF map[uint32]uint32
	usage   func(string) float32
	meaning func(string) (float64, bool)
	trust   confidence
}

func (r *run) df(term uint32) uint32 { return r.scope.df(term) + r.extraDF[term] }
func (r *run) idf(df uint32) float32 { return idf(df, r.n) }

// Search ranks the tools of the scope, and the query's extra ones, for a query. It is safe for concurrent use, takes no
// lock, and gives the same answer whenever corpus, scope and query are the same.
func (s *Scope) Search(query Query) Group {
	limit := query.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	c := s.corpus
	r := &run{scratch: c.pool.Get().(*scratch), scope: s, params: c.params, n: s.n, q: &parsedQuery{}, meaning: query.Meaning}
	if query.Usage != nil {
		r.usage = func(name string) float32 { return float32(min(max(query.Usage(name), 0), 1)) }
	}
	vocab, extras := r.prepareExtras(query.Extra)

	r.vocab = vocab
	lex := c.lex
	if query.Synonyms != nil {
		lex = query.Synonyms.lex
	}
	p := parser{lex: lex, vocab: vocab, params: r.params, df: r.df, idf: r.idf, q: r.q, slotOf: r.slotOf}
	p.parse(query.Text)
	g := Group{Weak: true}
	if r.q.text != "" {
		r.collect(vocab.size(), extras)
		r.rank()
		r.promoteExtras(limit)
		r.trust = r.confidence(r.order[:min(len(r.order), limit)])
		if r.meaning != nil {
			r.fuse()
			r.promoteExtras(limit)
		}
		if len(r.order) > 0 {
			g = r.answer(limit, query.Explain)
		} else {
			g.Hits = r.substring(limit, extras)
		}
	}
	r.done()
	c.pool.Put(r.scratch)
	return g
}

// prepareExtras prepares documents that came with the query, on top of the corpus's vocabulary.
func (r *run) prepareExtras(docs []Document) (*vocabulary, []*entry) {
	vocab := r.scope.corpus.vocab
	if len(docs) == 0 {
		return vocab, nil
	}
	vocab = vocab.extend()
	p := newPreparer(r.scope.corpus.lex, vocab)
	extras := make([]*entry, 0, len(docs))
	r.extraDF = map[uint32]uint32{}
	for i := range docs {
		e := p.prepare(&docs[i], 0)
		for _, t := range e.terms {
			r.extraDF[t.term]++
		}
		extras = append(extras, e)
	}
	r.n += len(docs)
	return vocab, extras
}

// collect gathers the candidates: all members of a small scope; else the base's best, the whole overlay, and whatever
// bears the query as a name.
func (r *run) collect(terms int, extras []*entry) {
	r.reset(terms, len(r.q.slots))
	for _, s := range r.q.slots {
		r.wanted.set(s.term)
	}
	c := r.scope.corpus
	if !r.collectFromBase() {
		for i := range r.scope.n {
			r.gather(c.docs[r.scope.ordinal(i)], false)
		}
	}
	for _, e := range extras {
		r.gather(e, true)
	}
}

// collectFromBase gathers the base's candidates and the overlay. It reports false, having done nothing, when the scope is
// small or there is no usable base; then every member is scored.
func (r *run) collectFromBase() bool {
	c := r.scope.corpus
	if r.scope.n <= linearLimit || c.base == nil || !c.base.acquire() {
		return false
	}
	found, err := r.fromBase(c.base)
	if rerr := c.base.release(); err != nil || rerr != nil {
		c.log.Error("search the index; every tool is scored instead", "error", errors.Join(err, rerr))
		return false
	}
	for _, ord := range found {
		r.gather(c.docs[ord], false)
	}
	for _, ord := range c.overlay {
		if r.scope.contains(ord) {
			r.gather(c.docs[ord], false)
		}
	}
	return true
}

// rank scores the candidates and puts them in order, the best in front.
func (r *run) rank() {
	for i := range r.cands {
		c := &r.cands[i]
		r.firstPass(c)
		if c.score = c.first * r.params.nameGrade[c.grade]; c.score > 0 || c.grade != gradeNone {
			r.order = append(r.order, c)
		}
	}
	slices.SortFunc(r.order, compare)
	best := r.order[:min(len(r.order), r.params.rerank)]
	for _, c := range best {
		r.secondPass(c)
	}
	if r.q.clauses > 1 {
		r.byClause(best)
	}
	slices.SortFunc(best, compare)
	for _, s := range r.q.slots {
		r.wanted.clear(s.term)
	}
}

// promoteExtras keeps its place for an extra tool that meets more of the query than every tool of the corpus: it takes
// the last places within the limit if its score alone did not bring it there.
func (r *run) promoteExtras(limit int) {
	if r.extraDF == nil {
		return
	}
	local := float32(0)
	for _, c := range r.order {
		if !c.extra {
			local = max(local, c.met)
		}
	}
	place := min(limit, len(r.order)) - 1
	for i := place + 1; i < len(r.order); i++ {
		c := r.order[i]
		if !c.extra || c.met <= local {
			continue
		}
		for place >= 0 && (r.order[place].extra || r.order[place].grade >= gradeOwn) {
			place--
		}
		if place < 0 {
			return
		}
		copy(r.order[place+1:i+1], r.order[place:i])
		r.order[place] = c
		place--
	}
}

// answer turns the best candidates into hits.
func (r *run) answer(limit int, explain bool) Group {
	best := r.order[:min(len(r.order), limit)]
	g := Group{Hits: make([]Hit, 0, len(best)), Weak: r.trust.weak, Met: float64(r.trust.met), Line: float64(r.trust.line)}
	for _, c := range best {
		h := Hit{Name: c.entry.name, Score: float64(c.score), Extra: c.extra}
		if explain {
			h.Explain = r.explain(c)
		}
		g.Hits = append(g.Hits, h)
	}
	return g
}

// confidence says how sure an answer is.
type confidence struct {
	weak      bool
	met, line float32
}

// confidence decides whether the best hits are only the nearest.
func (r *run) confidence(best []*candidate) confidence {
	p := r.params
	a := confidence{line: max(p.weakLine-p.weakPerWord*float32(max(len(r.q.concepts)-4, 0)), p.weakFloor)}
	named := false
	for _, c := range best[:min(len(best), defaultLimit)] {
		named = named || c.grade != gradeNone
		a.met = max(a.met, c.met)
	}
	a.weak = !named && a.met < a.line
	return a
}

// substring is the last resort when no word matches: the query as it stands, within names, sources and descriptions.
func (r *run) substring(limit int, extras []*entry) []Hit {
	text := strings.ToLower(r.q.text)
	var hits []Hit
	try := func(e *entry, extra bool) {
		if len(hits) < limit && (containsFold(e.name, text) || containsFold(e.source, text) || containsFold(e.description, text)) {
			hits = append(hits, Hit{Name: e.name, Extra: extra})
		}
	}
	for i := range r.scope.n {
		try(r.scope.corpus.docs[r.scope.ordinal(i)], false)
		if len(hits) == limit {
			break
		}
	}
	for _, e := range extras {
		try(e, true)
	}
	slices.SortFunc(hits, func(a, b Hit) int { return cmp.Compare(a.Name, b.Name) })
	return hits
}

// containsFold reports whether s contains lower, which is lower case, in any case.
func containsFold(s, lower string) bool {
	if len(lower) > len(s) {
		return false
	}
	if !isASCII(s) || !isASCII(lower) {
		return strings.Contains(strings.ToLower(s), lower)
	}
	first := lower[0]
	for i := 0; i+len(lower) <= len(s); i++ {
		c := s[i]
		if isUpper(c) {
			c += 'a' - 'A'
		}
		if c == first && strings.EqualFold(s[i:i+len(lower)], lower) {
			return true
		}
	}
	return false
}
