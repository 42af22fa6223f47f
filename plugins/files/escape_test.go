//go:build unix

package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// outside makes a directory beside the workspace with a secret in it.
func outside(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret.txt"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func untouched(t *testing.T, dir string) {
	t.Helper()
	if got := readFile(t, dir, "secret.txt"); got != "secret" {
		t.Errorf("the file outside was changed to %q", got)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("files were made outside: %v", entries)
	}
}

func TestNoToolReachesOutsideOfTheRoot(t *testing.T) {
	out := outside(t)
	f, dir := space(t, map[string]string{"in/file.txt": "text"})
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	up, err := filepath.Rel(dir, out)
	if err != nil {
		t.Fatal(err)
	}
	link(filepath.Join(out, "secret.txt"), "absolute-file-link")
	link(filepath.Join(up, "secret.txt"), "relative-file-link")
	link(out, "directory-link")
	link("directory-link", "link-to-link")
	link("/", "slash")
	link("/proc/self/root", "proc")
	for name, path := range map[string]string{
		"a parent directory":                     filepath.Join(up, "secret.txt"),
		"a parent directory after a real one":    "in/../../" + filepath.Base(out) + "/secret.txt",
		"a parent directory after a missing one": "no/../../" + filepath.Base(out) + "/secret.txt",
		"the parent itself":                      "..",
		"an absolute path":                       filepath.Join(out, "secret.txt"),
		"an absolute path to the root itself":    filepath.Join(dir, "in/file.txt"),
		"a link to a file by absolute path":      "absolute-file-link",
		"a link to a file by relative path":      "relative-file-link",
		"a link in the middle":                   "directory-link/secret.txt",
		"a new file behind a link":               "directory-link/new.txt",
		"a new directory behind a link":          "directory-link/new/new.txt",
		"a link to a link":                       "link-to-link/secret.txt",
		"a link to the file system's root":       "slash" + out + "/secret.txt",
		"a magic link":                           "proc" + out + "/secret.txt",
		"a path with a NUL":                      "in\x00/../../secret.txt",
		"a name with a NUL":                      "in/\x00",
	} {
		t.Run(name, func(t *testing.T) {
			for tool, err := range every(t.Context(), f, path) {
				if err == nil {
					t.Errorf("%s %q was allowed", tool, path)
				} else if strings.Contains(err.Error(), out) && !strings.HasPrefix(path, "/") && !strings.Contains(path, out) {
					t.Errorf("%s tells a path of the machine: %v", tool, err)
				}
			}
			untouched(t, out)
		})
	}
}

func TestLinksInsideTheRootCanBeReadButNotReplaced(t *testing.T) {
	f, dir := space(t, map[string]string{"real/file.txt": "inside"})
	for to, name := range map[string]string{"real/file.txt": "file-link", "real": "dir-link"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"file-link", "dir-link/file.txt"} {
		r, err := f.read(t.Context(), readInput{Path: path, StartLine: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(t, r)[0]; got != "inside" {
			t.Errorf("%s = %q", path, got)
		}
	}
	_, err := f.write(t.Context(), writeInput{Path: "file-link", Content: "x"})
	fault(t, err, "invalid_arguments", "is a link")
	if _, err := f.write(t.Context(), writeInput{Path: "dir-link/file.txt", Content: "new"}); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, dir, "real/file.txt"); got != "new" {
		t.Errorf("content = %q", got)
	}
}

func TestAWalkDoesNotFollowLinks(t *testing.T) {
	out := outside(t)
	f, dir := space(t, map[string]string{"a/file.txt": "secret of mine"})
	for to, name := range map[string]string{out: "out", ".": "a/loop"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := f.search(t.Context(), searchInput{Pattern: "secret", Path: ".", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Matches) != 1 || found.Matches[0].Path != "a/file.txt" {
		t.Errorf("matches = %+v", found.Matches)
	}
	listed, err := f.list(t.Context(), listInput{Path: ".", Depth: 20, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range listed.Entries {
		got = append(got, e.Kind+" "+e.Path)
	}
	if want := "directory a,file a/file.txt,link a/loop,link out"; strings.Join(got, ",") != want {
		t.Errorf("entries = %v", got)
	}
}

func TestSpecialFilesAreRefusedAndNeverBlock(t *testing.T) {
	f, dir := space(t, nil)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	sock, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	for _, path := range []string{"pipe", "sock"} {
		for tool, err := range every(t.Context(), f, path) {
			if err == nil {
				t.Errorf("%s %s was allowed", tool, path)
			}
		}
	}
	if _, err := f.search(t.Context(), searchInput{Pattern: "x", Path: ".", Limit: 1}); err != nil {
		t.Errorf("a search beside special files: %v", err)
	}
	_, err = f.read(t.Context(), readInput{Path: "pipe", StartLine: 1})
	fault(t, err, "invalid_arguments", "pipe is no regular file but a pipe")
}

// A link that is swapped between looking and opening must not lead outside either: "swap" points inside and outside in
// turn while the tools work on it, until each of them has met both.
func TestARaceOfLinksDoesNotLeadOutside(t *testing.T) {
	out := outside(t)
	f, dir := space(t, map[string]string{"in/secret.txt": "harmless"})
	swap := func(to string) error {
		fresh := filepath.Join(dir, "fresh")
		if err := os.Symlink(to, fresh); err != nil {
			return err
		}
		return os.Rename(fresh, filepath.Join(dir, "swap"))
	}
	if err := swap("in"); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			for _, to := range []string{out, "in"} {
				if err := swap(to); err != nil {
					t.Error(err)
					return
				}
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for name, c := range map[string]struct {
		times int
		run   func() error
	}{
		"read": {500, func() error {
			r, err := f.read(t.Context(), readInput{Path: "swap/secret.txt", StartLine: 1})
			if err == nil && texts(t, r)[0] != "harmless" {
				t.Errorf("%q was read", texts(t, r)[0])
			}
			return err
		}},
		"write": {20, func() error {
			_, err := f.write(t.Context(), writeInput{Path: "swap/secret.txt", Content: "harmless"})
			return err
		}},
		"patch": {20, func() error {
			_, err := f.patch(t.Context(), patchInput{Path: "swap/secret.txt", Edits: []edit{{Old: "harmless", New: "harmless"}}})
			return err
		}},
		"list": {100, func() error {
			l, err := f.list(t.Context(), listInput{Path: "swap", Depth: 1, Limit: 5})
			if err == nil && len(l.Entries) > 0 && l.Entries[0].Size == int64(len("secret")) {
				t.Errorf("%+v was listed", l.Entries)
			}
			return err
		}},
	} {
		for worked, refused := 0, 0; (worked < c.times || refused < c.times) && !t.Failed(); {
			if c.run() == nil {
				worked++
			} else {
				refused++
			}
		}
		if t.Failed() {
			t.Errorf("tool %s", name)
		}
	}
	close(done)
	swapping.Wait()
	untouched(t, out)
}
