//go:build unix

package store

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// openIn opens the journal "test" in a folder. Whoever calls closes the store.
func openIn(dir string, power bool) (*Journal, *Store, error) {
	s, err := Open(dir, nil)
	if err != nil {
		return nil, nil, err
	}
	w, err := s.Writer(power)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	j, err := w.Journal("test")
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return j, s, nil
}

func TestAFileThatIsNoJournalIsRefusedOrCountsForNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		put  func(path, other string) error
		want string // of the error; "" if it is opened, and there is nothing in it
	}{
		"a folder":       {func(path, _ string) error { return os.Mkdir(path, 0o700) }, "move it away"},
		"a link":         {func(path, other string) error { return os.Symlink(other, path) }, "move it away"},
		"a pipe":         {func(path, _ string) error { return syscall.Mkfifo(path, 0o600) }, "move it away"},
		"the other file": {func(path, other string) error { return os.Link(other, path) }, "another hermesd"},
		"all bytes set": {func(path, _ string) error {
			return os.WriteFile(path, bytes.Repeat([]byte{0xff}, 2<<20), 0o600)
		}, ""},
		"ten gigabytes of nothing": {func(path, _ string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 10<<30))
		}, ""},
		"a turn after which there is none": {func(path, _ string) error {
			b, _ := frame(nil, 0, math.MaxUint64, []byte("last"))
			return os.WriteFile(path, b, 0o600)
		}, ""},
		"a length that is not there": {func(path, _ string) error {
			b, _ := frame(nil, 0, 1, make([]byte, maxRecord))
			return os.WriteFile(path, b[:100], 0o600)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			other := filepath.Join(dir, "test-0.journal")
			if err := os.WriteFile(other, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := tt.put(filepath.Join(dir, "test-1.journal"), other); err != nil {
				t.Fatal(err)
			}
			j, s, err := openIn(dir, false)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if left := texts(t, j.Left()); left != nil {
				t.Errorf("left %q", left)
			}
			put(t, j, "a")
		})
	}
}

func TestManySmallRecordsTakeNoMemory(t *testing.T) {
	dir := t.TempDir()
	var b []byte
	var sum uint32
	const many = 1 << 20
	for range many {
		b, sum = frame(b, sum, 7, nil)
	}
	if err := os.WriteFile(filepath.Join(dir, "test-0.journal"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	b = nil
	j, s, err := openIn(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, err := range j.Left() {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == many {
			runtime.ReadMemStats(&now)
		}
	}
	if n != many || now.HeapAlloc > before.HeapAlloc+8<<20 {
		t.Errorf("%d records, %d bytes", n, now.HeapAlloc-before.HeapAlloc)
	}
}

func TestAJournalIsOpenOnce(t *testing.T) {
	dir := t.TempDir()
	j, _ := journalIn(t, dir, false)
	if err := os.Remove(filepath.Join(dir, "state.lock")); err != nil { // as an operator does who believes it to be stale
		t.Fatal(err)
	}
	if _, _, err := openIn(dir, false); err == nil || !strings.Contains(err.Error(), "another hermesd") {
		t.Errorf("a second daemon has the journal: %v", err)
	}
	put(t, j, "a")
}

func TestAnAppendThatFailedLeavesNothingThatCounts(t *testing.T) {
	dir := t.TempDir()
	j, end := journalIn(t, dir, false)
	put(t, j, "a", "b")
	j.end, j.sum = 0, 0 // as if that append had failed after it wrote all, and could not be undone
	put(t, j, "x")
	end()
	j, _ = journalIn(t, dir, false)
	if diff := cmp.Diff([]string{"x"}, texts(t, j.Left())); diff != "" {
		t.Error(diff)
	}
}

func TestAnAppendAfterOneThatFailed(t *testing.T) {
	dir := t.TempDir()
	j, end := journalIn(t, dir, false)
	put(t, j, "first")
	whole := j.files[0]
	readOnly, err := os.Open(whole.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	j.files[0] = readOnly
	if err := j.Append([][]byte{[]byte("second")}); err == nil {
		t.Error("a file that cannot be written was written")
	}
	j.files[0] = whole
	put(t, j, "third")
	end()
	j, _ = journalIn(t, dir, false)
	if diff := cmp.Diff([]string{"first", "third"}, texts(t, j.Left())); diff != "" {
		t.Error(diff)
	}
}

// lives is a journal that loses power in the middle of its writes: of each that was not synced any sectors may be on the disk.
type lives struct {
	dir     string
	j       *Journal
	next    int
	before  []string // what earlier lives left; the owner takes it over before he appends
	held    []string // what was turned and not dropped
	current []string // what was appended since
	turned  bool
}

func (l *lives) open(t *rapid.T) {
	w := &Writer{store: &Store{dir: l.dir}}
	j, err := w.Journal("test")
	if err != nil {
		t.Fatal(err)
	}
	l.j = j
	l.before = slices.Concat(l.before, l.held, l.current)
	l.held, l.current, l.turned = nil, nil, false
	var left []string
	for r, err := range j.Left() {
		if err != nil {
			t.Fatal(err)
		}
		id, _, whole := strings.Cut(string(r), " ")
		if n, err := strconv.Atoi(id); err != nil || !whole || n > l.next {
			t.Fatalf("nobody appended %.20q", r)
		}
		left = append(left, id)
	}
	kept := slices.DeleteFunc(slices.Clone(left), func(id string) bool { return !slices.Contains(l.before, id) })
	if !slices.Equal(kept, l.before) {
		t.Fatalf("left %q, without some of %q", left, l.before)
	}
}

func (l *lives) append(t *rapid.T) {
	var records [][]byte
	var names []string
	for range rapid.IntRange(1, 4).Draw(t, "records") {
		l.next++
		names = append(names, strconv.Itoa(l.next))
		records = append(records, fmt.Appendf(nil, "%d %s", l.next, strings.Repeat("x", rapid.SampledFrom([]int{0, 10, 500, 1500}).Draw(t, "size"))))
	}
	f, from := l.j.files[l.j.current], l.j.end
	old := make([]byte, 8<<10)
	if _, err := f.ReadAt(old, from/sector*sector); err != nil {
		t.Fatal(err)
	}
	if err := l.j.Append(records); err != nil {
		t.Fatal(err)
	}
	l.before = nil
	if !rapid.Bool().Draw(t, "power is lost") {
		l.current = append(l.current, names...)
		return
	}
	for at := from / sector * sector; at < l.j.end; at += sector {
		if rapid.Bool().Draw(t, "sector is lost") {
			if _, err := f.WriteAt(old[:sector], at); err != nil {
				t.Fatal(err)
			}
		}
		old = old[sector:]
	}
	l.close(t)
	l.open(t)
}

const sector = 512

func (l *lives) close(t *rapid.T) {
	if err := l.j.close(); err != nil {
		t.Fatal(err)
	}
}

func TestAJournalKeepsThroughLossOfPowerWhatItTook(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			t.Fatal(err)
		}
		l := &lives{dir: dir}
		l.open(t)
		defer func() { l.close(t) }()
		t.Repeat(map[string]func(*rapid.T){
			"append": l.append,
			"turn": func(*rapid.T) {
				if l.j.Turn(); !l.turned {
					l.held, l.current, l.turned = l.current, nil, true
				}
			},
			"drop": func(*rapid.T) {
				l.j.Drop()
				l.held, l.turned = nil, false
			},
			"killed": func(t *rapid.T) {
				l.close(t)
				l.open(t)
			},
		})
	})
}
