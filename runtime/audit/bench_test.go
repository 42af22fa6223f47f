package audit_test

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/tool"
)

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// perUnit reports the processor time that run takes for each of its units, of which it does b.N.
func perUnit(b *testing.B, unit string, run func()) {
	b.Helper()
	b.ReportAllocs()
	before := processorTime(b)
	run()
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/"+unit)
}

// BenchmarkTable takes records over that are in the journal already.
func BenchmarkTable(b *testing.B) {
	for _, size := range []int{2, 20, 200, 2000} {
		b.Run(fmt.Sprint("rows=", size), func(b *testing.B) {
			l := open(b, b.TempDir(), audit.Options{})
			entries := make([]audit.Entry, size)
			for i := range entries {
				r := started("01J00000000000000000000000")
				if i%2 == 1 {
					r = finished(r.CallID, tool.OutcomeOK)
				}
				entries[i] = l.EntryOf(r)
				entries[i].Hash = make(audit.Digest, 32)
			}
			perUnit(b, "row", func() {
				var seq int64
				for todo := b.N; todo > 0; todo -= size {
					for i := range entries {
						seq++
						entries[i].Seq = seq
					}
					if _, err := l.Insert(entries); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkCall is all that the audit does for a call.
func BenchmarkCall(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			l := open(b, b.TempDir(), audit.Options{})
			perUnit(b, "call", func() {
				var wg sync.WaitGroup
				for c := range callers {
					wg.Go(func() {
						start, end := started("01J00000000000000000000000"), finished("01J00000000000000000000000", tool.OutcomeOK)
						for range (b.N + c) / callers {
							if err := l.Started(b.Context(), start); err != nil {
								b.Error(err)
								return
							}
							l.Finished(end)
						}
					})
				}
				wg.Wait()
				if _, err := l.Query(b.Context(), &audit.Filter{Limit: 1}); err != nil { // until all is in the table
					b.Fatal(err)
				}
			})
		})
	}
}
