package search

import (
	"cmp"
	"slices"
	"strings"
)

// Explanation says why a tool ranks where it does.
type Explanation struct {
	Name     string  // how the query agrees with the tool's name: "", "near", "full", "own" or "exact"
	Met      float64 // share of the query's information that the tool meets, 0..1
	First    float64 // BM25F
	NamePart float64 // added to the factor of the second pass: own name asked for
	Verb     float64 // verb agrees (above zero) or not (below)
	Source   float64 // whole source named
	Pairs    float64 // neighbouring words
	Coverage float64 // factor for the met share
	Usage    float64 // learned
	Meaning  float64 // nearness in meaning, a cosine; 0 where it is not known
	ByWords  int     // place by words alone, from 1; 0 where meaning changed nothing
	Words    []WordExplanation
}

// WordExplanation says what one word of the query found.
type WordExplanation struct {
	Word        string
	Weight      float64  // share that cleaning left of it
	Information float64  // weight x information within the scope
	Found       string   // the term that met it, "" if none did
	Fields      []string // of the tool that have the term: see FieldNames
	Score       float64  // its part of First
}

// FieldNames are the parts of a tool that are searched, as an explanation names them.
var FieldNames = [fields]string{"name", "source", "first sentence", "description", "parameters", "parameter texts", "keywords"}

var gradeNames = [...]string{"", "near", "full", "own", "exact"}

func (r *run) explain(c *candidate) *Explanation {
	x := &Explanation{
		Name: gradeNames[c.grade], Met: float64(c.met), First: float64(c.first),
		NamePart: float64(c.second.name), Verb: float64(c.second.verb), Source: float64(c.second.source),
		Pairs: float64(c.second.pair), Coverage: float64(c.second.coverage), Usage: float64(c.second.usage),
		Meaning: c.near, ByWords: c.byWords,
	}
	matches := r.matches[c.from:c.to]
	for i := range r.q.concepts {
		q := &r.q.concepts[i]
		w := WordExplanation{Word: q.word, Weight: float64(q.weight), Information: float64(q.info)}
		for _, a := range q.alts {
			sum, terms, where := float32(0), []string{}, packed(0)
			for _, s := range a.slots {
				m := slices.IndexFunc(matches, func(m match) bool { return m.slot == s })
				if m < 0 {
					terms = nil
					break
				}
				f := matches[m].freq
				sum += f / (f + r.params.k1) * r.q.slots[s].idf
				terms = append(terms, r.vocab.term(r.q.slots[s].term))
				where |= c.entry.freq(r.q.slots[s].term)
			}
			if score := float64(q.weight * a.weight * sum); terms != nil && score > w.Score {
				w.Found, w.Score, w.Fields = strings.Join(terms, " "), score, where.names()
			}
		}
		x.Words = append(x.Words, w)
	}
	return x
}

// freq returns how often a term stands in the fields of the document.
func (e *entry) freq(term uint32) packed {
	i, ok := slices.BinarySearchFunc(e.terms, term, func(p posting, id uint32) int { return cmp.Compare(p.term, id) })
	if !ok {
		return 0
	}
	return e.terms[i].freq
}

// names are the fields with a count above zero.
func (p packed) names() (names []string) {
	for f, name := range FieldNames {
		if p.get(f) > 0 {
			names = append(names, name)
		}
	}
	return names
}
