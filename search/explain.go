package search

import (
	"fmt"
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
	Weight      float64 // share that cleaning left of it
	Information float64 // weight x information within the scope
	Found       string  // the term that met it, "" if none did
	Score       float64 // its part of First
}

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
			sum, terms := float32(0), []string{}
			for _, s := range a.slots {
				m := slices.IndexFunc(matches, func(m match) bool { return m.slot == s })
				if m < 0 {
					terms = nil
					break
				}
				f := matches[m].freq
				sum += f / (f + r.params.k1) * r.q.slots[s].idf
				terms = append(terms, r.vocab.term(r.q.slots[s].term))
			}
			if score := float64(q.weight * a.weight * sum); terms != nil && score > w.Score {
				w.Found, w.Score = strings.Join(terms, " "), score
			}
		}
		x.Words = append(x.Words, w)
	}
	return x
}

// String renders the explanation in a few lines.
func (x *Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "met %.0f%% bm25f %.2f x (1 %+.2f name %+.2f verb %+.2f source %+.2f pairs) x %.2f coverage",
		100*x.Met, x.First, x.NamePart, x.Verb, x.Source, x.Pairs, x.Coverage)
	if x.Usage > 0 {
		fmt.Fprintf(&b, " x %.2f learned", 1+x.Usage)
	}
	if x.Name != "" {
		fmt.Fprintf(&b, "; %s name", x.Name)
	}
	for _, w := range x.Words {
		fmt.Fprintf(&b, "\n  %-16s weight %.2f information %5.2f", w.Word, w.Weight, w.Information)
		if w.Found == "" {
			b.WriteString("  not met")
		} else {
			fmt.Fprintf(&b, "  by %q %.2f", w.Found, w.Score)
		}
	}
	return b.String()
}
