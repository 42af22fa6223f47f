package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/store"
	"github.com/hermesd/hermesd/runtime/tool"
)

// auditIn opens the audit of a state directory. Both are the caller's to close, the log first.
func auditIn(ctx context.Context, dir string, power bool) (*audit.Log, *store.Store, error) {
	s, err := store.Open(dir, nil)
	if err != nil {
		return nil, nil, err
	}
	w, err := s.Writer(power)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	journal, err := w.Journal("audit")
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	l, err := audit.Open(ctx, w, journal, nil)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return l, s, nil
}

// records is the audit of a state directory until the test ends.
func records(t testing.TB, dir string, power bool) *audit.Log {
	t.Helper()
	l, s, err := auditIn(t.Context(), dir, power)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

func audited(b testing.TB, power bool) *pipeline.Pipeline {
	b.Helper()
	return newPipeline(b, &pipeline.Options{Audit: records(b, b.TempDir(), power)})
}

func small() *kb {
	k := newKB()
	k.busy = true
	return k
}

// together runs fn by several callers and reports calls per second and the median of one call.
func together(b *testing.B, callers int, fn func()) {
	var left atomic.Int64
	left.Store(int64(b.N))
	took := make([][]time.Duration, callers)
	b.ResetTimer()
	start := time.Now()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				at := time.Now()
				fn()
				took[i] = append(took[i], time.Since(at))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "calls/s")
	b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1000, "p50-µs")
	b.ReportMetric(float64(runtime.GOMAXPROCS(0)), "cores")
}

func benchmark(b *testing.B, power bool, callers int) {
	p, k := audited(b, power), small()
	together(b, callers, func() {
		if out := p.Call(b.Context(), k.request("search", `{"q":"deploy","n":5}`)); out.Err != nil {
			b.Error(out.Err)
		}
	})
}

func BenchmarkRaw1(b *testing.B) {
	k := small()
	together(b, 1, func() {
		r := k.request("search", `{"q":"deploy","n":5}`)
		if _, err := k.Invoke(b.Context(), &provider.Request{Call: r.Call, Definition: k.tools["search"]}); err != nil {
			b.Error(err)
		}
	})
}

func BenchmarkPipelineUnaudited1(b *testing.B) {
	p, k := newPipeline(b, nil), small()
	together(b, 1, func() {
		if out := p.Call(b.Context(), k.request("search", `{"q":"deploy","n":5}`)); out.Err != nil {
			b.Error(out.Err)
		}
	})
}

func BenchmarkPipelineProcess1(b *testing.B)  { benchmark(b, false, 1) }
func BenchmarkPipelineProcess16(b *testing.B) { benchmark(b, false, 16) }
func BenchmarkPipelinePower1(b *testing.B)    { benchmark(b, true, 1) }
func BenchmarkPipelinePower16(b *testing.B)   { benchmark(b, true, 16) }

// BenchmarkCommit is one durable commit by itself: what the power rows may cost on top.
func BenchmarkCommit(b *testing.B) {
	l := records(b, b.TempDir(), true)
	n := 0
	together(b, 1, func() {
		n++
		if err := l.Started(b.Context(), &tool.Record{Kind: tool.RecordStarted, CallID: fmt.Sprint(n)}); err != nil {
			b.Error(err)
		}
	})
}
