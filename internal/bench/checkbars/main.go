// Command checkbars is `make bars`: it runs the benchmarks in rounds, holds the medians against the table of bars, and prints
// one line for each. It ends with 1 if a bar is missed by more than the noise of bars.Noise, or was not measured. The search
// bars need the evaluation data that HERMESD_EVAL_DATA names, and are left out without it.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hermesd/hermesd/internal/bench/bars"
	"github.com/hermesd/hermesd/search/searchtest"
)

var (
	rounds = flag.Int("rounds", 5, "how often every benchmark runs; all run once before any runs again")
	each   = flag.String("benchtime", "500ms", "how long a benchmark runs in a round")
)

// suites are packages and which of their benchmarks count.
var suites = [][2]string{
	{"./internal/bench", "."},
	{"./runtime/daemon", "^BenchmarkPipeline$"},
	{"./policy/rules", "^BenchmarkDecide50Rules$"},
}

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	missed, err := check(ctx, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bars:", err)
		os.Exit(2)
	}
	if missed > 0 {
		fmt.Printf("%d bars are missed\n", missed)
		os.Exit(1)
	}
}

// check measures, prints the table, and returns how many bars are missed.
func check(ctx context.Context, w io.Writer) (missed int, err error) {
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Fprintf(os.Stderr, "load average %s; figures count on a machine that is left alone\n", strings.Fields(string(load))[0])
	}
	data := os.Getenv(searchtest.DataEnv) != ""
	once := bars.Readings{}
	if data {
		if err := measure(ctx, once, "run", "./search/searchtest/benchsearch", "-bench"); err != nil {
			return 0, err
		}
	}
	var all []bars.Readings
	for n := range *rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", n+1, *rounds)
		r := maps.Clone(once)
		for _, suite := range suites {
			if err := measure(ctx, r, "test", "-run", "^$", "-bench", suite[1], "-benchtime", *each, suite[0]); err != nil {
				return 0, err
			}
		}
		all = append(all, r)
	}
	return report(w, all, data)
}

// measure runs the go command and takes the readings from its output.
func measure(ctx context.Context, r bars.Readings, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, &out)
	}
	return r.Read(&out)
}

func report(w io.Writer, rounds []bars.Readings, data bool) (missed int, err error) {
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprintln(t, "issue\tbar\tmeasured\t\tlimit\tcompared with\tverdict")
	table := bars.Table()
	slices.SortStableFunc(table, func(a, b bars.Bar) int { return cmp.Compare(a.Issue, b.Issue) })
	for _, b := range table {
		if b.Data && !data {
			fmt.Fprintf(t, "%d\t%s\t\t\t\t\tleft out: %s is not set\n", b.Issue, b.What, searchtest.DataEnv)
			continue
		}
		v := b.Judge(rounds)
		if v.Missed {
			missed++
		}
		relation := "≤"
		if b.AtLeast {
			relation = "≥"
		}
		fmt.Fprintf(t, "%d\t%s\t%s %s\t%s\t%s\t%s\t%s\n", b.Issue, b.What, number(v.Measured), b.Reading.Unit, relation, number(v.Limit), compared(&v, rounds), &v)
	}
	_, err = fmt.Fprintf(t, "Medians of %d rounds; a reading up to %.0f%% beyond a limit that depends on time is noise.\n", len(rounds), bars.Noise*100)
	return missed, errors.Join(err, t.Flush())
}

// number writes three digits, and no power of ten.
func number(x float64) string {
	digits := 0
	for limit := 100.0; digits < 4 && x < limit; limit /= 10 {
		digits++
	}
	return strconv.FormatFloat(x, 'f', digits, 64)
}

// compared writes a limit that depends on other readings as a sum, or what is only printed beside.
func compared(v *bars.Verdict, rounds []bars.Readings) string {
	if v.Beside != nil {
		return "(" + number(bars.Median(rounds, *v.Beside)) + ")"
	}
	var parts []string
	for i, other := range v.Others {
		part := number(other)
		if f := v.Terms[i].Factor; f != 1 {
			part = fmt.Sprintf("%g x %s", f, part)
		}
		parts = append(parts, part)
	}
	if len(parts) > 0 && v.Base > 0 {
		parts = append(parts, number(v.Base))
	}
	return strings.Join(parts, " + ")
}
