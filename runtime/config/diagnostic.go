package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/hermesd/hermesd/internal/redact"
)

// Diagnostics is everything that is wrong with a configuration, or worth a warning, found in one pass.
type Diagnostics struct {
	items []Diagnostic
	files map[string]*hcl.File
	raw   hcl.Diagnostics
	mask  func(string) string // hides secrets, those in source lines too
}

// Diagnostic is one finding. Lines and columns count from 1; File is empty where no place in a file is at fault.
type Diagnostic struct {
	Severity string `json:"severity"` // "error" or "warning"
	Summary  string `json:"summary"`
	Detail   string `json:"detail,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
}

// newDiagnostics masks secrets in texts that may quote values, and puts the findings in the order of the files.
func newDiagnostics(raw hcl.Diagnostics, files map[string]*hcl.File, order []string, mask func(string) string) Diagnostics {
	d := Diagnostics{files: files, raw: slices.Clone(raw), mask: mask}
	rank := make(map[string]int, len(order))
	for i, name := range order {
		rank[name] = i
	}
	slices.SortStableFunc(d.raw, func(a, b *hcl.Diagnostic) int {
		at, bt := place(a, rank), place(b, rank)
		return slices.Compare(at[:], bt[:])
	})
	for i, item := range d.raw {
		masked := *item
		masked.Summary, masked.Detail = mask(item.Summary), mask(item.Detail)
		masked.Expression, masked.EvalContext = nil, nil
		d.raw[i] = &masked
		out := Diagnostic{Severity: "error", Summary: masked.Summary, Detail: masked.Detail}
		if masked.Severity == hcl.DiagWarning {
			out.Severity = "warning"
		}
		if at := masked.Subject; at != nil {
			out.File, out.Line, out.Column = at.Filename, at.Start.Line, at.Start.Column
		}
		d.items = append(d.items, out)
	}
	return d
}

// place orders findings without a source before those with one.
func place(d *hcl.Diagnostic, rank map[string]int) [2]int {
	if d.Subject == nil {
		return [2]int{-1, 0}
	}
	return [2]int{rank[d.Subject.Filename], d.Subject.Start.Byte}
}

// And is these findings and then others of the same configuration.
func (d Diagnostics) And(more Diagnostics) Diagnostics {
	d.items = append(slices.Clip(d.items), more.items...)
	d.raw = append(slices.Clip(d.raw), more.raw...)
	return d
}

// Items are the findings in the order of the files and lines.
func (d Diagnostics) Items() []Diagnostic { return d.items }

// HasErrors says that the configuration cannot be used.
func (d Diagnostics) HasErrors() bool { return d.raw.HasErrors() }

// Err is the diagnostics as an error, or nil when there is none but warnings.
func (d Diagnostics) Err() error {
	if !d.HasErrors() {
		return nil
	}
	return d
}

// Error gives each finding a line.
func (d Diagnostics) Error() string {
	lines := make([]string, len(d.items))
	for i, item := range d.items {
		lines[i] = item.String()
	}
	return strings.Join(lines, "\n")
}

func (d Diagnostic) String() string {
	var b strings.Builder
	if d.File != "" {
		fmt.Fprintf(&b, "%s:%d,%d: ", d.File, d.Line, d.Column)
	}
	if d.Severity == "warning" {
		b.WriteString("warning: ")
	}
	b.WriteString(d.Summary)
	if d.Detail != "" {
		b.WriteString("; " + d.Detail)
	}
	return b.String()
}

// WriteTo prints the findings for people, each with its source line, in which secrets are masked, and what may be one.
func (d Diagnostics) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	if err := hcl.NewDiagnosticTextWriter(&b, shownFiles(d.files), 0, false).WriteDiagnostics(d.raw); err != nil {
		return 0, fmt.Errorf("write diagnostics: %w", err)
	}
	if b.Len() == 0 {
		return 0, nil
	}
	n, err := io.WriteString(w, d.mask(blanks.ReplaceAllString(b.String(), redact.Mark)))
	return int64(n), err
}

// JSON is the findings as a JSON array.
func (d Diagnostics) JSON() ([]byte, error) {
	if d.items == nil {
		return []byte("[]"), nil
	}
	return json.MarshalIndent(d.items, "", "  ")
}
