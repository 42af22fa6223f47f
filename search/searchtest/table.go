package searchtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/hermesd/hermesd/search"
)

// MacroSets are the sets over which quality is averaged.
func MacroSets() []string {
	return []string{"mcptools", "livemcp", "azure", "arcade", "cloudflare", "toolbench", "sealtools", "metatool", "mcpproxy45"}
}

// size is a catalog on which speed is measured, with what bare postings without bleve took on it: the limit.
type size struct {
	set              string
	tools            int // the first so many of the set
	limit50, limit95 time.Duration
}

var sizes = []size{
	{"many", 3_000, 0, 0},
	{"many", 6_585, 400 * time.Microsecond, 820 * time.Microsecond},
	{"stress25k", 25_000, 570 * time.Microsecond, 1490 * time.Microsecond},
	{"stress100k", 100_000, 1700 * time.Microsecond, 7 * time.Millisecond},
}

// RunTable measures quality and speed on the sets in dir and prints one table. Without dir only our own corpus is
// judged, and the table says so. What it measured goes to readings, too, as a Go benchmark prints it.
func RunTable(ctx context.Context, w, readings io.Writer, dir string) error {
	own, err := Corpus()
	if err != nil {
		return err
	}
	t := &table{ctx: ctx, w: tabwriter.NewWriter(w, 2, 0, 2, ' ', tabwriter.AlignRight), readings: readings}
	t.row("set", "tools", "queries", "recall@1", "recall@5", "nDCG@5", "no match", "weak", "false")
	if _, err := t.judge(own); err != nil {
		return err
	}
	if dir == "" {
		t.text("%s is not set: the sets of other people's tools, and speed, were skipped", DataEnv)
		return t.w.Flush()
	}
	if err := t.quality(dir); err != nil {
		return err
	}
	if err := t.speed(dir); err != nil {
		return err
	}
	return t.w.Flush()
}

type table struct {
	ctx      context.Context
	w        *tabwriter.Writer
	readings io.Writer
}

// read prints what was measured of one thing, value before unit.
func (t *table) read(name string, pairs ...any) {
	fmt.Fprintf(t.readings, "BenchmarkSearch/%s 1 %s", name, fmt.Sprintln(pairs...))
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

func (t *table) row(cells ...any) {
	for _, c := range cells {
		switch c := c.(type) {
		case float64:
			fmt.Fprintf(t.w, "%.3f\t", c)
		case time.Duration:
			if c == 0 {
				fmt.Fprint(t.w, "-\t")
			} else {
				fmt.Fprintf(t.w, "%.2f\t", ms(c))
			}
		default:
			fmt.Fprintf(t.w, "%v\t", c)
		}
	}
	fmt.Fprintln(t.w)
}

func (t *table) text(format string, args ...any) { fmt.Fprintf(t.w, format+"\n", args...) }

// judge prints the row of a set and returns its measures and those of its keyword queries.
func (t *table) judge(set *Set) (all [2]Metrics, err error) {
	e, _, err := open(t.ctx, set.Docs, "")
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	scope := e.Corpus().Scope(nil)
	for i := range set.Queries {
		q := &set.Queries[i]
		g := scope.Search(search.Query{Text: q.Query, Limit: 10})
		all[0].Add(q, g)
		if q.Kind == "keyword" && len(q.Relevant) > 0 {
			all[1].Add(q, g)
		}
	}
	m := all[0]
	m.Done()
	falseAnswers := any("-")
	if m.Unanswerable > 0 {
		falseAnswers = m.False
	}
	t.row(set.Name, len(set.Docs), len(set.Queries), m.Recall1, m.Recall5, m.NDCG5, m.NoMatch, m.Weak, falseAnswers)
	t.read(set.Name, m.Recall5, "recall@5", m.NDCG5, "nDCG@5", m.Weak, "weak", m.False, "false")
	return [2]Metrics{m, all[1]}, nil
}

func (t *table) quality(dir string) error {
	var macro, keyword Metrics
	worst := 0.0
	macroSets := MacroSets()
	for _, name := range append(macroSets, "many", "stress100k") {
		set, err := LoadSet(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		m, err := t.judge(set)
		if err != nil {
			return err
		}
		worst = max(worst, m[0].NoMatch)
		if !slices.Contains(macroSets, name) {
			continue
		}
		n := float64(len(macroSets))
		macro.Recall1 += m[0].Recall1 / n
		macro.Recall5 += m[0].Recall5 / n
		macro.NDCG5 += m[0].NDCG5 / n
		keyword.Answerable += m[1].Answerable
		keyword.Recall1 += m[1].Recall1
		keyword.Recall5 += m[1].Recall5
		keyword.NDCG5 += m[1].NDCG5
	}
	keyword.Done()
	t.row(fmt.Sprintf("macro of %d", len(macroSets)), "", "", macro.Recall1, macro.Recall5, macro.NDCG5, "", "", "")
	t.row("keyword queries", "", keyword.Answerable, keyword.Recall1, keyword.Recall5, keyword.NDCG5, "", "", "")
	t.read("macro", macro.Recall5, "recall@5", macro.NDCG5, "nDCG@5")
	t.read("keyword", keyword.Recall5, "recall@5")
	t.read("worst", worst, "no-match")
	return nil
}

func (t *table) speed(dir string) (err error) {
	disk, err := os.MkdirTemp("", "bench-search-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(disk)) }()
	t.text("")
	t.row("tools", "p50 ms", "p95 ms", "limit p50", "limit p95", "visible ms", "build ms", "reopen ms", "change found ms", "heap MB")
	for _, s := range sizes {
		set, err := LoadSet(filepath.Join(dir, s.set))
		if err != nil {
			return err
		}
		set.Docs = set.Docs[:min(s.tools, len(set.Docs))]
		if err := t.measure(set, s, filepath.Join(disk, fmt.Sprint(s.tools))); err != nil {
			return err
		}
	}
	t.text("limit: our own postings without bleve, as measured in docs/design; visible: until the first search sees a catalog; build: until its index is complete")
	return nil
}

func (t *table) measure(set *Set, s size, disk string) error {
	before := heap()
	e, took, err := open(t.ctx, set.Docs, disk)
	if err != nil {
		return err
	}
	used := heap() - before
	p50, p95 := latency(e.Corpus().Scope(nil), set.Queries)

	changed := slices.Clone(set.Docs)
	changed[len(changed)/2].Description = "Frobnicates the quuxlet."
	start := time.Now()
	e.Update(changed)
	g := e.Corpus().Scope(nil).Search(search.Query{Text: "frobnicate quuxlet"})
	found := time.Since(start)
	if len(g.Hits) == 0 || g.Hits[0].Name != changed[len(changed)/2].Name {
		return fmt.Errorf("%d tools: the next search does not find a changed tool", len(changed))
	}
	if err := errors.Join(e.Ready(t.ctx), e.Close()); err != nil {
		return err
	}

	reopen := time.Duration(0)
	if len(changed) >= search.DefaultLargeFrom {
		again, took, err := open(t.ctx, changed, disk)
		if err != nil {
			return err
		}
		reopen = took.build
		if err := again.Close(); err != nil {
			return err
		}
	}
	t.row(len(set.Docs), p50, p95, s.limit50, s.limit95, took.visible, took.build, reopen, found, used>>20)
	t.read(fmt.Sprint("tools=", len(set.Docs)), ms(p50), "p50-ms", ms(p95), "p95-ms", ms(took.build), "build-ms", ms(reopen), "reopen-ms")
	return nil
}

type opening struct{ visible, build time.Duration }

// open makes an engine for the documents and waits until its index is complete.
func open(ctx context.Context, docs []search.Document, dir string) (*search.Engine, opening, error) {
	var took opening
	e, err := search.New(&search.Options{Dir: dir})
	if err != nil {
		return nil, took, err
	}
	start := time.Now()
	e.Update(docs)
	took.visible = time.Since(start)
	if err := e.Ready(ctx); err != nil {
		return nil, took, errors.Join(err, e.Close())
	}
	took.build = time.Since(start)
	return e, took, nil
}

// latency asks all queries twice and returns percentiles of the second round.
func latency(scope *search.Scope, queries []Query) (p50, p95 time.Duration) {
	took := make([]time.Duration, len(queries))
	for range 2 {
		for i := range queries {
			start := time.Now()
			scope.Search(search.Query{Text: queries[i].Query})
			took[i] = time.Since(start)
		}
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*95/100]
}

// heap returns the bytes in use. The second collection also drops what pools hold.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
