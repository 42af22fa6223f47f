package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/pluginsdk"
)

func TestListNamesWhatIsThere(t *testing.T) {
	content := map[string]string{"b.txt": "12345", "a/x.go": "", "a/deep/y.go": "1", ".hidden": "", "c.go": "123"}
	for name, c := range map[string]struct {
		in        listInput
		want      []string
		truncated bool
	}{
		"one level":             {listInput{Depth: 1}, []string{"directory a", "file b.txt 5", "file c.go 3"}, false},
		"two levels":            {listInput{Depth: 2}, []string{"directory a", "directory a/deep", "file a/x.go", "file b.txt 5", "file c.go 3"}, false},
		"a subdirectory":        {listInput{Path: "a", Depth: 1}, []string{"directory a/deep", "file a/x.go"}, false},
		"hidden names too":      {listInput{Depth: 1, Hidden: true}, []string{"file .hidden", "directory a", "file b.txt 5", "file c.go 3"}, false},
		"a glob over names":     {listInput{Depth: 9, Glob: "*.go"}, []string{"file a/deep/y.go 1", "file a/x.go", "file c.go 3"}, false},
		"a glob over the paths": {listInput{Depth: 9, Glob: "a/*.go"}, []string{"file a/x.go"}, false},
		"a limit":               {listInput{Depth: 9, Limit: 2}, []string{"directory a", "directory a/deep"}, true},
		"exactly the limit":     {listInput{Depth: 1, Limit: 3}, []string{"directory a", "file b.txt 5", "file c.go 3"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := space(t, content)
			if c.in.Path == "" {
				c.in.Path = "."
			}
			if c.in.Limit == 0 {
				c.in.Limit = 100
			}
			out, err := f.list(t.Context(), c.in)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range out.Entries {
				line := e.Kind + " " + e.Path
				if e.Size > 0 {
					line += fmt.Sprintf(" %d", e.Size)
				}
				if e.Modified == "" {
					t.Errorf("%s has no time", e.Path)
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if out.Truncated != c.truncated {
				t.Errorf("truncated = %v", out.Truncated)
			}
		})
	}
}

func TestListSaysWhatIsWrong(t *testing.T) {
	f, _ := space(t, map[string]string{"file": ""})
	_, err := f.list(t.Context(), listInput{Path: "file", Depth: 1, Limit: 1})
	fault(t, err, pluginsdk.InvalidArguments, "file is no directory")
	_, err = f.list(t.Context(), listInput{Path: "no", Depth: 1, Limit: 1})
	fault(t, err, pluginsdk.InvalidArguments, "no does not exist")
}

func TestGlobsMatchAsShellsDo(t *testing.T) {
	for name, c := range map[string]struct {
		pattern string
		yes, no []string
	}{
		"a star stays inside a name":     {"*.go", []string{"a.go", "x/a.go", ".go"}, []string{"a.gox", "a_go"}},
		"a slash binds to the path":      {"src/*.go", []string{"src/a.go"}, []string{"src/x/a.go", "x/src/a.go"}},
		"two stars cross directories":    {"src/**/*.go", []string{"src/a.go", "src/x/y/a.go"}, []string{"a.go", "srcx/a.go"}},
		"two stars at the end":           {"src/**", []string{"src/a", "src/x/y"}, []string{"src", "lib/a"}},
		"a question mark is one letter":  {"?.c", []string{"a.c", "ü.c"}, []string{"ab.c", ".c"}},
		"a set":                          {"[a-c]x", []string{"ax", "cx"}, []string{"dx", "[a-c]x"}},
		"a negated set":                  {"[!a-c]x", []string{"dx"}, []string{"ax"}},
		"alternatives":                   {"*.{go,mod}", []string{"a.go", "go.mod"}, []string{"a.sum", "a.{go,mod}"}},
		"other signs are themselves":     {"a+(b).$", []string{"a+(b).$"}, []string{"aab."}},
		"a leading dot slash is nothing": {"./a/*", []string{"a/b"}, []string{"b"}},
		"an unclosed set is itself":      {"[a", []string{"[a"}, []string{"a"}},
		"an umlaut":                      {"ü*", []string{"über"}, []string{"uber"}},
		"nothing matches everything":     {"", []string{"a", "b/c"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := compileGlob(c.pattern)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range c.yes {
				if !g.matches(p, base(p)) {
					t.Errorf("%q does not match %q", c.pattern, p)
				}
			}
			for _, p := range c.no {
				if g.matches(p, base(p)) {
					t.Errorf("%q matches %q", c.pattern, p)
				}
			}
		})
	}
}

func base(p string) string {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] == '/' {
			return p[i+1:]
		}
	}
	return p
}

func FuzzGlob(f *testing.F) {
	for _, p := range []string{"*.go", "[!a-z]{b,c}", "**/x", "[]]", "{{{", "[^", "a/**"} {
		f.Add(p, "a/b.go")
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		g, err := compileGlob(pattern)
		if err == nil {
			g.matches(path, base(path)) // must not panic
		}
	})
}
