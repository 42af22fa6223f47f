package search_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/search"
)

// diskEngine returns an engine over dir that keeps docs on disk, and what it logged.
func diskEngine(t *testing.T, dir string, docs []search.Document) (*search.Engine, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	e, err := search.New(&search.Options{Dir: dir, LargeFrom: 600, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	e.Update(docs)
	return e, &log
}

func folders(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "search-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func sameAnswers(t *testing.T, label string, a, b *search.Engine) {
	t.Helper()
	for _, q := range corpus(t).Queries {
		query := search.Query{Text: q.Query, Limit: 10}
		want, got := names(a.Corpus().Scope(nil).Search(query)), names(b.Corpus().Scope(nil).Search(query))
		if !slices.Equal(want, got) {
			t.Errorf("%s: %q found %q, want %q", label, q.Query, got, want)
		}
	}
}

func TestALargeCatalogIsReopened(t *testing.T) {
	dir := t.TempDir()
	docs := append(manyDocs(600), corpus(t).Docs...)
	memory := newEngine(t, nil, docs...)

	first, log := diskEngine(t, dir, docs)
	ready(t, first)
	sameAnswers(t, "built", memory, first)
	built := folders(t, dir)
	if len(built) != 1 || log.Len() > 0 {
		t.Fatalf("folders %q, log %s", built, log)
	}
	info, err := os.Stat(built[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second, log := diskEngine(t, dir, docs)
	sameAnswers(t, "reopened", memory, second)
	ready(t, second)
	again, err := os.Stat(built[0])
	if err != nil || !again.ModTime().Equal(info.ModTime()) || log.Len() > 0 {
		t.Errorf("the index was rebuilt (%v): %s", err, log)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}

	t.Run("a catalog that changed since takes the rest from the old index", func(t *testing.T) {
		changed := slices.Clone(docs)
		changed[len(changed)-1].Description = "Frobnicates a widget."
		changed = slices.Delete(changed, 3, 4)
		third, log := diskEngine(t, dir, changed)
		sameAnswers(t, "overlay", newEngine(t, nil, changed...), third)
		ready(t, third)
		sameAnswers(t, "rebuilt", newEngine(t, nil, changed...), third)
		if now := folders(t, dir); len(now) != 1 || now[0] == built[0] || log.Len() > 0 {
			t.Errorf("folders %q, log %s", now, log)
		}
	})
}

func TestADamagedIndexIsRebuilt(t *testing.T) {
	docs := append(manyDocs(600), corpus(t).Docs...)
	memory := newEngine(t, nil, docs...)
	damage := map[string]func(t *testing.T, folder string){
		"the forward index is cut short": func(t *testing.T, folder string) { truncate(t, filepath.Join(folder, "forward")) },
		"the forward index is missing":   func(t *testing.T, folder string) { remove(t, filepath.Join(folder, "forward")) },
		"the index is gone":              func(t *testing.T, folder string) { remove(t, filepath.Join(folder, "index")) },
		"a byte of a segment is wrong": func(t *testing.T, folder string) {
			segments, err := filepath.Glob(filepath.Join(folder, "index", "*.zap"))
			if err != nil || len(segments) == 0 {
				t.Fatal("no segments", err)
			}
			flip(t, segments[0])
		},
		"the forward index has a wrong byte": func(t *testing.T, folder string) { flip(t, filepath.Join(folder, "forward")) },
	}
	for name, hurt := range damage {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first, _ := diskEngine(t, dir, docs)
			ready(t, first)
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			hurt(t, folders(t, dir)[0])
			second, log := diskEngine(t, dir, docs)
			ready(t, second)
			sameAnswers(t, name, memory, second)
			if !strings.Contains(log.String(), "will be rebuilt") {
				t.Errorf("nothing about it in the log: %s", log)
			}
			if err := second.Close(); err != nil {
				t.Fatal(err)
			}
			third, log := diskEngine(t, dir, docs)
			ready(t, third)
			if log.Len() > 0 {
				t.Errorf("the rebuilt index is not used: %s", log)
			}
		})
	}
}

func TestAFolderThatCannotBeWrittenLeavesTheIndexInMemory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	docs := append(manyDocs(600), corpus(t).Docs...)
	e, log := diskEngine(t, dir, docs)
	ready(t, e)
	sameAnswers(t, "no folder", newEngine(t, nil, docs...), e)
	if !strings.Contains(log.String(), "kept in memory") {
		t.Errorf("nothing about it in the log: %s", log)
	}
}

func truncate(t *testing.T, file string) {
	t.Helper()
	info, err := os.Stat(file)
	if err == nil {
		err = os.Truncate(file, info.Size()/2)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func flip(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 0x40
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
