package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/pluginsdk"
)

func TestWriteReplacesAFileAsAWhole(t *testing.T) {
	f, dir := space(t, map[string]string{"old.txt": "a long content that goes away"})
	if err := os.Chmod(filepath.Join(dir, "old.txt"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := f.write(t.Context(), writeInput{Path: "old.txt", Content: "new", IfExists: "overwrite"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(writeOutput{Path: "old.txt", Bytes: 3}, out); diff != "" {
		t.Error(diff)
	}
	if got := readFile(t, dir, "old.txt"); got != "new" {
		t.Errorf("content = %q", got)
	}
	info, err := os.Stat(filepath.Join(dir, "old.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode became %v", info.Mode())
	}
	onlyFiles(t, dir, "old.txt")
}

// onlyFiles wants nothing else in dir: no temporary file stays behind.
func onlyFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWriteMakesMissingDirectories(t *testing.T) {
	f, dir := space(t, nil)
	out, err := f.write(t.Context(), writeInput{Path: "a/b/c.txt", Content: "text", IfExists: "fail"})
	if err != nil {
		t.Fatal(err)
	}
	if !out.Created || readFile(t, dir, "a/b/c.txt") != "text" {
		t.Errorf("output = %+v", out)
	}
}

func TestANameMayBeAsLongAsTheSystemAllows(t *testing.T) {
	f, dir := space(t, nil)
	for name, path := range map[string]string{
		"ASCII":                strings.Repeat("x", 255),
		"three bytes a letter": strings.Repeat("語", 85),
		"four bytes a letter":  strings.Repeat("🙂", 63),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := f.write(t.Context(), writeInput{Path: path, Content: "a", IfExists: "overwrite"}); err != nil {
				t.Fatal(err)
			}
			if _, err := f.patch(t.Context(), patchInput{Path: path, Edits: []edit{{Old: "a", New: "b"}}}); err != nil {
				t.Fatal(err)
			}
			if got := readFile(t, dir, path); got != "b" {
				t.Errorf("content = %q", got)
			}
		})
	}
}

func TestWriteSaysWhatIsWrongAndChangesNothing(t *testing.T) {
	f, dir := space(t, map[string]string{"dir/file": "text"})
	for name, c := range map[string]struct {
		in    writeInput
		words []string
	}{
		"a file that exists":       {writeInput{Path: "dir/file", IfExists: "fail"}, []string{"exists already"}},
		"a directory":              {writeInput{Path: "dir"}, []string{"is a directory"}},
		"the root":                 {writeInput{Path: "."}, []string{"is a directory"}},
		"content beyond the limit": {writeInput{Path: "new", Content: strings.Repeat("x", 1<<16+1)}, []string{"65537 bytes", "limit is 65536"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.write(t.Context(), c.in)
			fault(t, err, pluginsdk.InvalidArguments, c.words...)
			onlyFiles(t, dir, "dir")
			if got := readFile(t, dir, "dir/file"); got != "text" {
				t.Errorf("content = %q", got)
			}
		})
	}
	if _, err := f.write(t.Context(), writeInput{Path: "dir/file/x", Content: "y"}); err == nil {
		t.Error("a file was taken for a directory")
	}
}

func TestReadOnlyFilesCannotBeChanged(t *testing.T) {
	f, dir := space(t, map[string]string{"file": "text"})
	f.ReadOnly = true
	if err := f.writable(t.Context()); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("availability = %v", err)
	}
	if _, err := f.write(t.Context(), writeInput{Path: "file", Content: "x"}); err == nil {
		t.Error("write was allowed")
	}
	if _, err := f.patch(t.Context(), patchInput{Path: "file", Edits: []edit{{Old: "text", New: "x"}}}); err == nil {
		t.Error("patch was allowed")
	}
	if got := readFile(t, dir, "file"); got != "text" {
		t.Errorf("content = %q", got)
	}
}

func TestReadersSeeTheOldOrTheNewFileAndNothingBetween(t *testing.T) {
	f, _ := space(t, map[string]string{"file": strings.Repeat("a", 30000)})
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range 50 {
			if _, err := f.write(t.Context(), writeInput{Path: "file", Content: strings.Repeat(string(rune('a'+i%26)), 30000)}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 100 {
		r, err := f.read(t.Context(), readInput{Path: "file", StartLine: 1})
		if err != nil {
			t.Error(err)
			break
		}
		text := texts(t, r)[0]
		if len(text) != 30000 || strings.Trim(text, text[:1]) != "" {
			t.Errorf("a mixture of %d bytes was read", len(text))
			break
		}
	}
	writing.Wait()
}

func TestPatchesOfOneFileAtOnceLoseNothing(t *testing.T) {
	f, dir := space(t, map[string]string{"file": "start\n"})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := f.patch(t.Context(), patchInput{Path: "file", Edits: []edit{{Old: "start\n", New: "start\nline\n"}}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := strings.Count(readFile(t, dir, "file"), "line\n"); got != 20 {
		t.Errorf("%d of 20 patches are left", got)
	}
}
