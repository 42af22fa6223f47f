package conformance

import (
	"fmt"
	"io"
	"strings"
)

// marks begin a line for people.
var marks = map[Status]string{Pass: "ok", Fail: "FAIL", Skip: "skip"}

// WriteTo prints the report for people.
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	if r.Plugin != "" {
		fmt.Fprintf(&b, "%s %s, %d tools\n\n", r.Plugin, r.Version, r.Tools)
	}
	count := map[Status]int{}
	for _, f := range r.Findings {
		count[f.Status]++
		fmt.Fprintf(&b, "%-5s %-14s %s\n", marks[f.Status], f.Check, f.About)
		for _, fault := range f.Faults {
			fmt.Fprintf(&b, "%20s → %s\n", "", strings.ReplaceAll(fault, "\n", "\n"+strings.Repeat(" ", 23)))
		}
		if f.Note != "" {
			fmt.Fprintf(&b, "%20s (%s)\n", "", f.Note)
		}
	}
	fmt.Fprintf(&b, "\n%d passed, %d failed, %d skipped\n", count[Pass], count[Fail], count[Skip])
	if r.Aborted {
		b.WriteString("the others were not tried: correct what failed first\n")
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}
