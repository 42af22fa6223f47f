package search_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/search"
	"github.com/hermesd/hermesd/search/searchtest"
)

// reciprocal returns 1/rank of the first relevant hit, averaged.
func reciprocal(scope *search.Scope, queries []searchtest.Query, usage func(string) func(string) float64) float64 {
	sum := 0.0
	for _, q := range queries {
		for i, h := range scope.Search(search.Query{Text: q.Query, Limit: 10, Usage: usage(q.Query)}).Hits {
			if slices.Contains(q.Relevant, h.Name) {
				sum += 1 / float64(i+1)
				break
			}
		}
	}
	return sum / float64(len(queries))
}

// A stream of searches, each followed by a call of the tool that was meant, makes later queries like them better and
// leaves the others as they were.
func TestLearningHelpsSimilarQueriesAndHurtsNoOthers(t *testing.T) {
	set := corpus(t)
	e := newEngine(t, nil, set.Docs...)
	scope := e.Corpus().Scope(nil)
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var lessons []search.Lesson
	var later, others []searchtest.Query
	for i, q := range set.Queries {
		if len(q.Relevant) == 0 || q.Kind == "names" || q.Kind == "multi" {
			continue
		}
		if i%2 == 0 {
			others = append(others, q)
			continue
		}
		for range 4 {
			lessons = append(lessons, search.Lesson{Terms: e.Terms(q.Query), Tool: q.Relevant[0], At: now.Add(-time.Hour)})
		}
		q.Query = "please " + strings.Join(slices.Insert(strings.Fields(q.Query), 1, "now"), " ")
		later = append(later, q)
	}
	none := func(string) func(string) float64 { return nil }
	known := search.NewLessons(lessons, now)
	learned := func(query string) func(string) float64 { return known.Usage(e.Terms(query)) }

	if before, after := reciprocal(scope, later, none), reciprocal(scope, later, learned); after < before+.05 {
		t.Errorf("similar queries: MRR %.3f before, %.3f after", before, after)
	}
	if before, after := reciprocal(scope, others, none), reciprocal(scope, others, learned); after < before-.005 {
		t.Errorf("other queries: MRR %.3f before, %.3f after", before, after)
	}
}

func TestLessonsAgeAndAreBounded(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	usage := func(age time.Duration, n int) float64 {
		list := make([]search.Lesson, n)
		for i := range list {
			list[i] = search.Lesson{Terms: []string{"find", "bug"}, Tool: "t", At: now.Add(-age)}
		}
		u := search.NewLessons(list, now).Usage([]string{"find", "bug"})
		if u == nil {
			return 0
		}
		return u("t")
	}
	fresh, old, many := usage(0, 4), usage(10*search.LessonHalfLife, 4), usage(0, 20_000)
	if fresh <= 0 || old > fresh/100 || many > 1 || usage(0, 0) != 0 {
		t.Errorf("fresh %v, after ten half-lives %v, 20,000 lessons %v", fresh, old, many)
	}
	if u := search.NewLessons([]search.Lesson{{Terms: []string{"a", "b", "c", "d", "x"}, Tool: "t", At: now}}, now).Usage([]string{"x", "y", "z"}); u != nil {
		t.Error("a query with one word in common is called similar")
	}
}

func TestTermsOfAQuery(t *testing.T) {
	e := newEngine(t, nil)
	got := e.Terms(`Please create the issues "Login broken" for issue 4711 at https://example.com`)
	if want := []string{"creat", "issu"}; !slices.Equal(got, want) {
		t.Errorf("terms %q, want %q", got, want)
	}
}
