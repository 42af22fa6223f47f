package search

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Lesson is what one search taught: a query was followed by a successful call of a tool.
type Lesson struct {
	Terms []string // of the query, from Engine.Terms
	Tool  string   // full name
	At    time.Time
}

// Constants of learning from use.
const (
	LessonHalfLife = 30 * 24 * time.Hour // after which a lesson counts half
	MaxLessons     = 10_000              // the newest that are looked at
	minSimilarity  = .5                  // of two queries, as the cosine of their sets of terms
	fewLessons     = 2                   // lessons that bring half of the most that can be learned
	mostLearned    = 1                   // of a lexical match
)

// Lessons is an immutable set of lessons, safe for concurrent use.
type Lessons struct {
	list   []Lesson
	weight []float64
	byTerm map[string][]int32
}

// NewLessons prepares lessons as they count at a moment. The slice is not kept.
func NewLessons(list []Lesson, now time.Time) *Lessons {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Lesson) int { return b.At.Compare(a.At) })
	list = list[:min(len(list), MaxLessons)]
	l := &Lessons{list: list, weight: make([]float64, len(list)), byTerm: map[string][]int32{}}
	for i, x := range list {
		age := max(now.Sub(x.At), 0)
		l.weight[i] = math.Exp2(-float64(age) / float64(LessonHalfLife))
		for _, t := range x.Terms {
			l.byTerm[t] = append(l.byTerm[t], int32(i))
		}
	}
	return l
}

// Usage returns, for Query.Usage, how much each tool was used after queries like the one with these terms; nil if no
// lesson is near. Only lessons are read, never results of calls.
func (l *Lessons) Usage(terms []string) func(name string) float64 {
	common := map[int32]int{}
	for _, t := range terms {
		for _, i := range l.byTerm[t] {
			common[i]++
		}
	}
	learned := map[string]float64{}
	near := make([]int32, 0, len(common))
	for i := range common {
		near = append(near, i)
	}
	slices.Sort(near) // sums of floats depend on their order
	for _, i := range near {
		similarity := float64(common[i]) / math.Sqrt(float64(len(terms)*len(l.list[i].Terms)))
		if similarity >= minSimilarity {
			learned[l.list[i].Tool] += similarity * similarity * l.weight[i]
		}
	}
	if len(learned) == 0 {
		return nil
	}
	return func(name string) float64 {
		n := learned[name]
		return mostLearned * n / (n + fewLessons)
	}
}

// Terms returns the stems of a query that describe what is wanted, sorted and each once: no stop words, no arguments.
// They are what a Lesson keeps of a query.
func (e *Engine) Terms(text string) []string {
	terms := []string{}
	for _, t := range tokenize(cut(text, maxQueryBytes)) {
		if !t.argument && !e.lex.stop[t.word] {
			terms = append(terms, t.stem)
		}
	}
	slices.SortFunc(terms, cmp.Compare)
	terms = slices.Compact(terms)
	return terms[:min(len(terms), maxConcepts)]
}
