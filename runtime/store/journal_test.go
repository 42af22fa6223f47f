package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// journalIn opens a journal in a store of its own, as a daemon does. It ends with the test, or when the function is called.
func journalIn(t *testing.T, dir string, power bool) (*Journal, func()) {
	t.Helper()
	s, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	end := func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(end)
	w, err := s.Writer(power)
	if err != nil {
		t.Fatal(err)
	}
	j, err := w.Journal("test")
	if err != nil {
		t.Fatal(err)
	}
	return j, end
}

func texts(t *testing.T, records iter.Seq2[[]byte, error]) (list []string) {
	t.Helper()
	for r, err := range records {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(r))
	}
	return list
}

func put(t *testing.T, j *Journal, records ...string) {
	t.Helper()
	var list [][]byte
	for _, r := range records {
		list = append(list, []byte(r))
	}
	if err := j.Append(list); err != nil {
		t.Fatal(err)
	}
}

func TestAJournalKeepsWhatNobodyTookOver(t *testing.T) {
	for name, tt := range map[string]struct {
		work func(t *testing.T, j *Journal)
		left []string
	}{
		"nothing was written":     {func(*testing.T, *Journal) {}, nil},
		"all of two groups":       {func(t *testing.T, j *Journal) { put(t, j, "a", "b"); put(t, j, "", "c") }, []string{"a", "b", "", "c"}},
		"while it is taken over":  {func(t *testing.T, j *Journal) { put(t, j, "a"); j.Turn(); put(t, j, "b") }, []string{"a", "b"}},
		"what could not be taken": {func(t *testing.T, j *Journal) { put(t, j, "a"); j.Turn(); put(t, j, "b"); j.Turn(); put(t, j, "c") }, []string{"a", "b", "c"}},
		"behind a turn back, what was longer before": {func(t *testing.T, j *Journal) {
			put(t, j, "first", "second", "third")
			j.Turn()
			put(t, j, "x")
			j.Drop()
			j.Turn()
			put(t, j, "fresh")
		}, []string{"x", "fresh"}},
	} {
		for _, power := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, power %t", name, power), func(t *testing.T) {
				dir := t.TempDir()
				j, end := journalIn(t, dir, power)
				tt.work(t, j)
				end()
				j, _ = journalIn(t, dir, power)
				if diff := cmp.Diff(tt.left, texts(t, j.Left())); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestTheLastThatAJournalHasIsTheNewest(t *testing.T) {
	dir := t.TempDir()
	var last []string
	for i := range 6 {
		j, end := journalIn(t, dir, false)
		if left := texts(t, j.Left()); i > 0 && !slices.Equal(left[max(0, len(left)-2):], last) {
			t.Errorf("opened for the %dth time: %q", i, left)
		}
		last = []string{fmt.Sprint("a", i), fmt.Sprint("b", i)}
		put(t, j, last[0])
		if texts(t, j.Left()) != nil {
			t.Error("what was left is still there")
		}
		if i%2 == 0 {
			j.Turn()
		}
		put(t, j, last[1])
		end()
	}
}

func TestAWriteThatWasTornCountsForNothing(t *testing.T) {
	for name, hurt := range map[string]func([]byte){
		"the last byte of a record": func(b []byte) { b[len(b)-1] ^= 1 },
		"its checksum":              func(b []byte) { b[0] ^= 1 },
		"its turn":                  func(b []byte) { b[15] ^= 1 },
		"its length":                func(b []byte) { b[7]++ },
		"a length beyond all":       func(b []byte) { binary.BigEndian.PutUint32(b[4:], 1<<31) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j, end := journalIn(t, dir, false)
			put(t, j, "whole")
			from := j.end
			put(t, j, "torn")
			to := j.end
			end()
			path := filepath.Join(dir, "test-0.journal")
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			hurt(raw[from:to])
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			j, _ = journalIn(t, dir, false)
			if diff := cmp.Diff([]string{"whole"}, texts(t, j.Left())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAJournalIsBoundedAndStaysUsable(t *testing.T) {
	j, _ := journalIn(t, t.TempDir(), false)
	if err := j.Append([][]byte{make([]byte, maxRecord+1)}); err == nil {
		t.Error("a record of any size was taken")
	}
	big := [][]byte{make([]byte, maxRecord)}
	var err error
	for range maxJournal/maxRecord + 1 {
		err = errors.Join(err, j.Append(big))
	}
	if err == nil {
		t.Error("a file of any size was written")
	}
	put(t, j, "small")
	j.Turn()
	if err := j.Append(big); err != nil {
		t.Error(err)
	}
}

func TestAJournalIsForItsOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	journalIn(t, dir, true)
	for i := range 2 {
		info, err := os.Stat(filepath.Join(dir, fmt.Sprintf("test-%d.journal", i)))
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() != journalRoom {
			t.Errorf("%v, %v", info, err)
		}
	}
}

func FuzzJournal(f *testing.F) {
	whole, sum := frame(nil, 0, 3, []byte("one"))
	whole, sum = frame(whole, sum, 3, []byte("two"))
	older, _ := frame(whole, sum, 2, []byte("older"))
	f.Add(older)
	f.Add(whole[:len(whole)-1])
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var again []byte
		var sum uint32
		for r, err := range readJournal(bytes.NewReader(raw)) {
			if err != nil {
				t.Fatal(err)
			}
			again, sum = frame(again, sum, r.turn, r.record)
		}
		if !bytes.HasPrefix(raw, again) {
			t.Error("records that are not in the file")
		}
	})
}
