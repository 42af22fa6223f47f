package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/pluginsdk"
)

// space makes the plugin's state over a directory with the files given, by slash-separated path.
func space(t *testing.T, content map[string]string) (*files, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f := &files{}
	if err := f.configure(t.Context(), settings{Root: dir, MaxReadBytes: 1 << 16, MaxWriteBytes: 1 << 16}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, r := range f.space.roots {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return f, dir
}

func readFile(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// texts are the text blocks of a result.
func texts(t *testing.T, r *pluginsdk.Result) []string {
	t.Helper()
	var out []string
	for _, c := range r.Content {
		var b struct{ Text string }
		if err := json.Unmarshal(c, &b); err != nil {
			t.Fatal(err)
		}
		out = append(out, b.Text)
	}
	return out
}

// fault wants an *Error of a code whose message holds every one of words.
func fault(t *testing.T, err error, code pluginsdk.Code, words ...string) {
	t.Helper()
	var e *pluginsdk.Error
	if !errors.As(err, &e) {
		t.Fatalf("error = %v, want one of code %s", err, code)
	}
	if e.Code != code {
		t.Errorf("code = %s (%v), want %s", e.Code, err, code)
	}
	for _, w := range words {
		if !strings.Contains(e.Message, w) {
			t.Errorf("message %q lacks %q", e.Message, w)
		}
	}
}

// every runs each tool on a path and returns the errors by tool name.
func every(ctx context.Context, f *files, path string) map[string]error {
	errs := map[string]error{}
	_, errs["read"] = f.read(ctx, readInput{Path: path, StartLine: 1})
	_, errs["write"] = f.write(ctx, writeInput{Path: path, Content: "intruder", IfExists: "overwrite"})
	_, errs["patch"] = f.patch(ctx, patchInput{Path: path, Edits: []edit{{Old: "secret", New: "intruder"}}})
	_, errs["list"] = f.list(ctx, listInput{Path: path, Depth: 1, Limit: 10})
	_, errs["search"] = f.search(ctx, searchInput{Pattern: "secret", Path: path, Limit: 10})
	return errs
}
