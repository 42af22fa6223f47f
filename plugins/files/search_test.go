package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/pluginsdk"
)

func TestSearchFindsLines(t *testing.T) {
	content := map[string]string{
		"a.go":              "package a\n\nfunc One() {}\nfunc Two() {}\n",
		"sub/b.go":          "package b\n// one of many\n",
		"sub/deep/c.txt":    "One more\r\nlast",
		".hidden/d.go":      "func One() {}\n",
		"binary":            "One\x00two",
		"long.txt":          strings.Repeat("x", 70000) + "One\nOne\n",
		"sub/invalid.latin": "caf\xe9 One",
	}
	for name, c := range map[string]struct {
		in   searchInput
		want []string // path:line:text
	}{
		"a text":                     {searchInput{Pattern: "One"}, []string{"a.go:3:func One() {}", "long.txt:2:One", "sub/deep/c.txt:1:One more"}},
		"without case":               {searchInput{Pattern: "ONE", IgnoreCase: true, Glob: "*.go"}, []string{"a.go:3:func One() {}", "sub/b.go:2:// one of many"}},
		"a text is no expression":    {searchInput{Pattern: "One()"}, []string{"a.go:3:func One() {}"}},
		"an expression":              {searchInput{Pattern: `^func \w+\(\)`, Regexp: true}, []string{"a.go:3:func One() {}", "a.go:4:func Two() {}"}},
		"the end of a line":          {searchInput{Pattern: "more$", Regexp: true}, []string{"sub/deep/c.txt:1:One more"}},
		"a last line without an end": {searchInput{Pattern: "last"}, []string{"sub/deep/c.txt:2:last"}},
		"hidden files too":           {searchInput{Pattern: "One", Glob: "*.go", Hidden: true}, []string{".hidden/d.go:1:func One() {}", "a.go:3:func One() {}"}},
		"below a directory":          {searchInput{Pattern: "One", Path: "sub"}, []string{"sub/deep/c.txt:1:One more"}},
		"in one file":                {searchInput{Pattern: "One", Path: "a.go"}, []string{"a.go:3:func One() {}"}},
		"a glob over the path":       {searchInput{Pattern: "n", IgnoreCase: true, Glob: "sub/**/*.txt"}, []string{"sub/deep/c.txt:1:One more"}},
		"nothing":                    {searchInput{Pattern: "absent"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := space(t, content)
			c.in.Limit = 100
			if c.in.Path == "" {
				c.in.Path = "."
			}
			out, err := f.search(t.Context(), c.in)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range out.Matches {
				got = append(got, fmt.Sprintf("%s:%d:%s", m.Path, m.Line, m.Text))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if out.Truncated {
				t.Error("truncated")
			}
			if name == "a text" && (out.Skipped != 2 || out.Files != 4) {
				t.Errorf("files = %d, skipped = %d", out.Files, out.Skipped)
			}
		})
	}
}

func TestSearchShowsContextThatMayOverlap(t *testing.T) {
	f, _ := space(t, map[string]string{"f": "1\n2\nhit a\nhit b\n5\n6\n7\n"})
	out, err := f.search(t.Context(), searchInput{Pattern: "hit", Path: ".", Context: 2, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	want := []match{
		{Path: "f", Line: 3, Text: "hit a", Before: []string{"1", "2"}, After: []string{"hit b", "5"}},
		{Path: "f", Line: 4, Text: "hit b", Before: []string{"2", "hit a"}, After: []string{"5", "6"}},
	}
	if diff := cmp.Diff(want, out.Matches); diff != "" {
		t.Error(diff)
	}
}

func TestSearchIsBounded(t *testing.T) {
	line := strings.Repeat("hit ", 2000) + "\n"
	f, _ := space(t, map[string]string{"a": strings.Repeat("hit\n", 50), "wide": strings.Repeat(line, 2000)})
	out, err := f.search(t.Context(), searchInput{Pattern: "hit", Path: "a", Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Matches) != 20 || !out.Truncated {
		t.Errorf("%d matches, truncated %v", len(out.Matches), out.Truncated)
	}
	out, err = f.search(t.Context(), searchInput{Pattern: "hit", Path: "wide", Limit: 1000, Context: 10})
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, m := range out.Matches {
		total += len(m.Text) + len(strings.Join(m.Before, "")) + len(strings.Join(m.After, ""))
		if len(m.Text) > maxMatchText+len("…") || !strings.HasSuffix(m.Text, "…") {
			t.Fatalf("a line of %d bytes is shown", len(m.Text))
		}
	}
	if !out.Truncated || total > 2*maxMatchBytes {
		t.Errorf("%d bytes, truncated %v", total, out.Truncated)
	}
}

func TestSearchSaysWhatIsWrong(t *testing.T) {
	f, _ := space(t, nil)
	_, err := f.search(t.Context(), searchInput{Pattern: "a(", Regexp: true, Path: ".", Limit: 1})
	fault(t, err, pluginsdk.InvalidArguments, "regular expression", "missing closing )")
	_, err = f.search(t.Context(), searchInput{Pattern: "a", Path: "no", Limit: 1})
	fault(t, err, pluginsdk.InvalidArguments, "no does not exist")
	_, err = f.search(t.Context(), searchInput{Pattern: "a", Path: ".", Glob: "[z-a]", Limit: 1})
	fault(t, err, pluginsdk.InvalidArguments, "no glob pattern")
}

func TestAWalkEndsWithItsCall(t *testing.T) {
	f, _ := space(t, map[string]string{"a/b": "x", "c": "y"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.search(ctx, searchInput{Pattern: "x", Path: ".", Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("search: %v", err)
	}
	if _, err := f.list(ctx, listInput{Path: ".", Depth: 2, Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("list: %v", err)
	}
}
