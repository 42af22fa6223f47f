package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/internal/atomicfile"
)

// state is a file with its mode, and what else its folder holds.
type state struct {
	Content string
	Mode    fs.FileMode
	Names   []string
}

func look(t *testing.T, path string) state {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	s := state{Content: string(content), Mode: info.Mode()}
	for _, e := range list {
		s.Names = append(s.Names, e.Name())
	}
	return s
}

func put(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestWriteReplacesAFileForItsOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	want := state{"new", 0o600, []string{"f"}}
	for name, before := range map[string]func(){
		"nothing was there": func() {},
		"a file was there":  func() { put(t, path, "a longer old one", 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			before()
			if err := atomicfile.Write(path, []byte("new")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, look(t, path)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A reader who has the old file open keeps it: nothing is written into it.
func TestTheOldContentIsNotTouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	put(t, path, "old", 0o640)
	for name, write := range map[string]func(string, []byte) error{"write": atomicfile.Write, "rewrite": atomicfile.Rewrite} {
		t.Run(name, func(t *testing.T) {
			second := path + "." + name
			if err := os.Link(path, second); err != nil {
				t.Skip("no links here: ", err)
			}
			if err := write(second, []byte("new")); err != nil {
				t.Fatal(err)
			}
			if got := look(t, path).Content; got != "old" {
				t.Errorf("the old file holds %q", got)
			}
		})
	}
}

func TestRewriteKeepsTheModeAndTheLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	put(t, target, "old", 0o640)
	if err := os.Symlink("target", link); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Rewrite(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(state{"new", 0o640, []string{"link", "target"}}, look(t, target)); diff != "" {
		t.Error(diff)
	}
	if got := look(t, link).Mode.Type(); got != fs.ModeSymlink {
		t.Errorf("the link is a %v now", got)
	}
	if err := atomicfile.Rewrite(filepath.Join(dir, "none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestCreateLeavesAFileThatIsThereAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := atomicfile.Create(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Create(path, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(state{"first", 0o600, []string{"key"}}, look(t, path)); diff != "" {
		t.Error(diff)
	}
}

func TestAFailureLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(folder, []byte("x")); err == nil {
		t.Error("a folder was replaced by a file")
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Errorf("the folder holds %v, %v", list, err)
	}
}
