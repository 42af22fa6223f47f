package bars_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/internal/bench/bars"
)

func TestReadingsAreTakenFromWhatGoTestPrints(t *testing.T) {
	got := bars.Readings{}
	err := got.Read(strings.NewReader(`goos: linux
BenchmarkCall/ours,_audit_process/callers=16-2   	     342	    636644 ns/op	      1571 calls/s	         0.1845 p50-ms
Benchmark of nothing
BenchmarkReady   	 3	 12.5 ns/op
PASS
`))
	if err != nil {
		t.Fatal(err)
	}
	want := bars.Readings{
		{Benchmark: "Call/ours,_audit_process/callers=16", Unit: "ns/op"}:   636644,
		{Benchmark: "Call/ours,_audit_process/callers=16", Unit: "calls/s"}: 1571,
		{Benchmark: "Call/ours,_audit_process/callers=16", Unit: "p50-ms"}:  .1845,
		{Benchmark: "Ready", Unit: "ns/op"}:                                 12.5,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := got.Read(strings.NewReader("BenchmarkX 1 2 ns/op 3\n")); err == nil {
		t.Error("a value without a unit was taken")
	}
}

func TestABarIsJudgedByTheMedianOfItsRounds(t *testing.T) {
	ours, theirs := bars.Source{Benchmark: "Ours", Unit: "ms"}, bars.Source{Benchmark: "Theirs", Unit: "ms"}
	round := func(a, b float64) bars.Readings { return bars.Readings{ours: a, theirs: b} }
	twice := bars.Bar{Reading: ours, Terms: []bars.Term{{Factor: 2, Of: theirs}}}
	sum := bars.Bar{Reading: ours, Base: 1, Terms: []bars.Term{{Factor: 1, Of: theirs}}}
	least := bars.Bar{Reading: ours, Base: 100, AtLeast: true}
	exact := bars.Bar{Reading: ours, Base: 100, AtLeast: true, Exact: true}
	for name, tt := range map[string]struct {
		bar    bars.Bar
		rounds []bars.Readings
		want   string
	}{
		"below its limit":                       {twice, []bars.Readings{round(3, 2)}, "met"},
		"far above it":                          {twice, []bars.Readings{round(6, 2)}, "MISSED by 50%"},
		"a little above it":                     {twice, []bars.Readings{round(4.1, 2)}, "met within noise, 2.5% beyond"},
		"one bad round of three":                {twice, []bars.Readings{round(3, 2), round(9, 2), round(3, 2)}, "met"},
		"a slow hour that struck both":          {twice, []bars.Readings{round(3, 2), round(30, 20), round(31, 20)}, "met"},
		"a sum of a number and a reading":       {sum, []bars.Readings{round(6, 3)}, "MISSED by 50%"},
		"enough":                                {least, []bars.Readings{round(100, 0)}, "met"},
		"too little":                            {least, []bars.Readings{round(80, 0)}, "MISSED by 20%"},
		"a little too little":                   {least, []bars.Readings{round(97, 0)}, "met within noise, 3.0% beyond"},
		"a little too little of what is exact":  {exact, []bars.Readings{round(97, 0)}, "MISSED by 3%"},
		"what it is compared with is not there": {twice, []bars.Readings{{ours: 1}}, "NOT MEASURED: Theirs ms"},
		"what it is compared with is nothing":   {twice, []bars.Readings{round(1, 0)}, "NOT MEASURED: Theirs ms"},
		"a round lacks it":                      {twice, []bars.Readings{round(3, 2), {}}, "NOT MEASURED: Ours ms"},
	} {
		t.Run(name, func(t *testing.T) {
			v := tt.bar.Judge(tt.rounds)
			if got := v.String(); got != tt.want {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
			if failed := strings.ToUpper(tt.want[:3]) == tt.want[:3]; v.Missed != failed {
				t.Errorf("missed = %t", v.Missed)
			}
		})
	}
}

func TestReadingsOfATestAreHeldAgainstTheirBars(t *testing.T) {
	macro, many := bars.Source{Benchmark: "Search/macro", Unit: "recall@5"}, bars.Source{Benchmark: "Search/many", Unit: "recall@5"}
	if missed := (bars.Readings{macro: 1, many: 1}).Missed(); len(missed) > 0 {
		t.Errorf("missed: %v", missed)
	}
	if missed := (bars.Readings{macro: .5, many: 1}).Missed(); len(missed) != 1 || !strings.Contains(missed[0], "macro recall: 0.5 recall@5, the bar is 0.81") {
		t.Errorf("missed: %v", missed)
	}
	if missed := (bars.Readings{{Benchmark: "Search/macro", Unit: "luck"}: 1}).Missed(); len(missed) != 1 {
		t.Errorf("a reading without a bar: %v", missed)
	}
}

func TestEveryBarComparesLikeWithLike(t *testing.T) {
	seen := map[bars.Source]bool{}
	for _, b := range bars.Table() {
		for _, term := range b.Terms {
			if term.Of.Unit != b.Reading.Unit {
				t.Errorf("%s: %s is compared with %s", b.What, b.Reading, term.Of)
			}
		}
		if b.Base == 0 && len(b.Terms) == 0 {
			t.Errorf("%s has no limit", b.What)
		}
		if seen[b.Reading] {
			t.Errorf("%s has two bars", b.Reading)
		}
		seen[b.Reading] = true
	}
}
