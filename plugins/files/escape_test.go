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

// A link that is swapped in between looking and opening must not lead outside either: a directory and a link to the
// outside change places all the time while every tool works on the path.
func TestARaceOfLinksDoesNotLeadOutside(t *testing.T) {
	out := outside(t)
	f, dir := space(t, map[string]string{"real/secret.txt": "harmless", "swap/secret.txt": "harmless"})
	if err := os.Symlink(out, filepath.Join(dir, "evil")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		swap, real := filepath.Join(dir, "swap"), filepath.Join(dir, "real2")
		for {
			select {
			case <-done:
				return
			default:
			}
			// Errors are part of the race: a write may have made the directory anew.
			if os.Rename(swap, real) != nil {
				continue
			}
			if os.Rename(filepath.Join(dir, "evil"), swap) == nil {
				os.Rename(swap, filepath.Join(dir, "evil"))
			}
			os.Rename(real, swap)
		}
	})
	for range 3000 {
		r, err := f.read(t.Context(), readInput{Path: "swap/secret.txt", StartLine: 1})
		if err == nil && texts(t, r)[0] == "secret" {
			t.Fatal("the secret was read")
		}
		if _, err := f.write(t.Context(), writeInput{Path: "swap/secret.txt", Content: "harmless"}); err != nil {
			continue
		}
		if _, err := f.patch(t.Context(), patchInput{Path: "swap/secret.txt", Edits: []edit{{Old: "harmless", New: "harmless"}}}); err != nil {
			continue
		}
	}
	close(done)
	swapping.Wait()
	untouched(t, out)
}
