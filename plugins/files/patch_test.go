package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/pluginsdk"
)

const program = "package main\n\nfunc main() {\n\tprintln(\"one\")\n\tprintln(\"two\")\n}\n"

func TestPatchMakesExactReplacements(t *testing.T) {
	for name, c := range map[string]struct {
		edits []edit
		want  string
		count int
		lines []int
	}{
		"one edit":                              {[]edit{{Old: `"one"`, New: `"1"`}}, strings.Replace(program, `"one"`, `"1"`, 1), 1, []int{4}},
		"several lines":                         {[]edit{{Old: "{\n\tprintln(\"one\")\n", New: "{\n"}}, strings.Replace(program, "\tprintln(\"one\")\n", "", 1), 1, []int{3}},
		"a deletion":                            {[]edit{{Old: "package main\n\n"}}, strings.TrimPrefix(program, "package main\n\n"), 1, []int{1}},
		"all occurrences":                       {[]edit{{Old: "println", New: "print", All: true}}, strings.ReplaceAll(program, "println", "print"), 2, []int{4}},
		"a later edit sees what an earlier did": {[]edit{{Old: "one", New: "three"}, {Old: "three", New: "four"}}, strings.Replace(program, "one", "four", 1), 2, []int{4, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			f, dir := space(t, map[string]string{"p.go": program})
			in := patchInput{Path: "p.go", Edits: c.edits, Dry: true}
			want := patchOutput{Path: "p.go", Replacements: c.count, Lines: c.lines, Bytes: len(c.want)}
			for _, dry := range []bool{true, false} {
				in.Dry = dry
				out, err := f.patch(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, out); diff != "" {
					t.Error(diff)
				}
				if dry && readFile(t, dir, "p.go") != program {
					t.Error("a dry run changed the file")
				}
			}
			if diff := cmp.Diff(c.want, readFile(t, dir, "p.go")); diff != "" {
				t.Error(diff)
			}
			onlyFiles(t, dir, "p.go")
		})
	}
}

func TestAPatchThatDoesNotFitSaysWhyAndChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		edits   []edit
		pointer string
		words   []string
	}{
		"text that occurs twice":       {program, []edit{{Old: "println", New: "x"}}, "/edits/0/old", []string{"edit 1", "2 times", "lines 4, 5", "unique"}},
		"text that overlaps itself":    {"aaa", []edit{{Old: "aa", New: "b"}}, "/edits/0/old", []string{"2 times", "lines 1, 1"}},
		"text that occurs often":       {strings.Repeat("x\n", 9), []edit{{Old: "x", New: "y"}}, "/edits/0/old", []string{"9 times", "lines 1, 2, 3, 4, 5, …"}},
		"a line with a small fault":    {program, []edit{{Old: `println("ome")`, New: "x"}}, "/edits/0/old", []string{"does not occur", "nearest line is 4", `println(\"one\")`}},
		"wrong white space":            {program, []edit{{Old: "    println(\"one\")\n", New: "x"}}, "/edits/0/old", []string{"does not occur", "Line 4", "white space"}},
		"other line ends":              {"a\r\nb\r\n", []edit{{Old: "a\nb\n", New: "x"}}, "/edits/0/old", []string{`"\r\n"`}},
		"nothing alike":                {program, []edit{{Old: "zzzz qqqq", New: "x"}}, "/edits/0/old", []string{"No line looks like it"}},
		"only white space":             {"a", []edit{{Old: "\t", New: "x"}}, "/edits/0/old", []string{"Read the file again"}},
		"a second edit that fails":     {program, []edit{{Old: "one", New: "1"}, {Old: "absent", New: "x"}}, "/edits/1/old", []string{"edit 2", "nothing was changed"}},
		"an empty old text":            {program, []edit{{New: "x"}}, "/edits/0/old", []string{"empty"}},
		"a result beyond the limit":    {program, []edit{{Old: "one", New: strings.Repeat("x", 1<<16)}}, "/edits", []string{"limit is 65536"}},
		"a file beyond the limit":      {strings.Repeat("x", 1<<16+1), []edit{{Old: "y", New: "x"}}, "/path", []string{"larger than 65536"}},
		"a file that is no UTF-8 text": {"caf\xe9", []edit{{Old: "c", New: "x"}}, "/path", []string{"no UTF-8 text"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, dir := space(t, map[string]string{"f": c.content})
			_, err := f.patch(t.Context(), patchInput{Path: "f", Edits: c.edits})
			fault(t, err, pluginsdk.InvalidArguments, c.words...)
			if e, ok := err.(*pluginsdk.Error); ok && e.Pointer != c.pointer {
				t.Errorf("pointer = %q", e.Pointer)
			}
			if readFile(t, dir, "f") != c.content {
				t.Error("the file was changed")
			}
			onlyFiles(t, dir, "f")
		})
	}
}

// Whatever text and edits are, an edit either replaces what it says, everything else staying as it was, or fails and says
// why.
func FuzzPatch(f *testing.F) {
	f.Add(program, `"one"`, `"1"`, false)
	f.Add("aaaa", "aa", "b", true)
	f.Add("a\r\nb", "a\nb", "c", false)
	f.Add("", "x", "", false)
	f.Add("\xff\xfe", "\xff", "é", false)
	f.Fuzz(func(t *testing.T, text, before, after string, all bool) {
		out, count, lines, err := applyEdits(text, []edit{{Old: before, New: after, All: all}})
		at := strings.Index(text, before)
		unique := at >= 0 && before != "" && !strings.Contains(text[at+1:], before)
		switch {
		case err != nil:
			if unique {
				t.Fatalf("a unique text was not replaced: %v", err)
			}
			if out != "" || err.Error() == "" {
				t.Fatalf("a failure gave %q, %v", out, err)
			}
		case !all && !unique:
			t.Fatal("an ambiguous or missing text was replaced")
		case !all && out != text[:at]+after+text[at+len(before):]:
			t.Fatalf("the replacement is wrong: %q", out)
		case len(out) != len(text)+count*(len(after)-len(before)):
			t.Fatalf("%d replacements made %d bytes of %d", count, len(out), len(text))
		case len(lines) != 1 || lines[0] < 1 || lines[0] > strings.Count(text, "\n")+1:
			t.Fatalf("lines = %v", lines)
		}
	})
}
