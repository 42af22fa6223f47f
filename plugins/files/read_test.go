package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/pluginsdk"
)

func TestReadAnswersWithWholeLinesInsideItsLimits(t *testing.T) {
	long := strings.Repeat("x", 1<<16)
	for name, c := range map[string]struct {
		content      string
		start, lines int
		want         []string
	}{
		"a whole file":                             {"a\nb\n", 1, 0, []string{"a\nb\n"}},
		"a file without a last line end":           {"a\nb", 1, 0, []string{"a\nb"}},
		"an empty file":                            {"", 1, 0, []string{""}},
		"carriage returns stay":                    {"a\r\nb\r\n", 1, 0, []string{"a\r\nb\r\n"}},
		"a range in the middle":                    {"a\nb\nc\nd\n", 2, 2, []string{"b\nc\n", "[lines 2 to 3; the file goes on: read on with start_line 4]"}},
		"a range that ends with the file":          {"a\nb\nc\n", 2, 2, []string{"b\nc\n"}},
		"a range beyond the end":                   {"a\nb\n", 2, 9, []string{"b\n"}},
		"a file larger than the limit":             {strings.Repeat("0123456789abcde\n", 5000), 1, 0, []string{strings.Repeat("0123456789abcde\n", 4096), "[lines 1 to 4096; the file goes on: read on with start_line 4097]"}},
		"a first line that does not fit is cut":    {long + "xyz\nb\n", 1, 0, []string{long, "[line 1 is cut: it is longer than the size limit]"}},
		"a later line that does not fit waits":     {"a\n" + long + "\n", 1, 0, []string{"a\n", "[lines 1 to 1; the file goes on: read on with start_line 2]"}},
		"a long line before the range is no limit": {strings.Repeat(long, 3) + "\nb\n", 2, 0, []string{"b\n"}},
		"a cut does not split a character":         {long[1:] + "ü\n", 1, 0, []string{long[1:], "[line 1 is cut: it is longer than the size limit]"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := space(t, map[string]string{"f": c.content})
			r, err := f.read(t.Context(), readInput{Path: "f", StartLine: c.start, Lines: c.lines})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, texts(t, r)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	f, _ := space(t, map[string]string{"a/text": "one\ntwo\n", "binary": "\x7fELF\x00\x01", "latin": "caf\xe9 au lait"})
	for name, c := range map[string]struct {
		in    readInput
		words []string
	}{
		"a missing file":            {readInput{Path: "a/no", StartLine: 1}, []string{"a/no does not exist", "files_list"}},
		"a directory":               {readInput{Path: "a", StartLine: 1}, []string{"is a directory", "files_list"}},
		"a binary file":             {readInput{Path: "binary", StartLine: 1}, []string{"binary file", "6 bytes"}},
		"text in another encoding":  {readInput{Path: "latin", StartLine: 1}, []string{"no UTF-8 text"}},
		"a start after the end":     {readInput{Path: "a/text", StartLine: 9}, []string{"only 2 lines"}},
		"a file used as directory":  {readInput{Path: "a/text/x", StartLine: 1}, nil},
		"an absolute path":          {readInput{Path: "/etc/passwd", StartLine: 1}, []string{"absolute", "relative to the working directory"}},
		"a path out of the project": {readInput{Path: "../x", StartLine: 1}, []string{"outside"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.read(t.Context(), c.in)
			if name == "a file used as directory" {
				fault(t, err, pluginsdk.ToolFailed, "not a directory")
				return
			}
			fault(t, err, pluginsdk.InvalidArguments, c.words...)
		})
	}
}

func TestAnImageIsShownAndOneThatIsTooLargeIsNot(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	f, _ := space(t, map[string]string{"small.png": b.String(), "large.png": b.String() + strings.Repeat("\x00", 1<<17)})
	r, err := f.read(t.Context(), readInput{Path: "small.png", StartLine: 1})
	if err != nil {
		t.Fatal(err)
	}
	var block struct{ Type, Data, MIMEType string }
	if err := json.Unmarshal(r.Content[0], &block); err != nil {
		t.Fatal(err)
	}
	if block.Type != "image" || block.MIMEType != "image/png" || block.Data != base64.StdEncoding.EncodeToString(b.Bytes()) {
		t.Errorf("block = %s", r.Content[0])
	}
	_, err = f.read(t.Context(), readInput{Path: "large.png", StartLine: 1})
	fault(t, err, pluginsdk.ResultTooLarge, "the limit is 65536")
}

func TestReadStopsWhenItsCallEnds(t *testing.T) {
	f, _ := space(t, map[string]string{"f": strings.Repeat("line\n", 1000)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.read(ctx, readInput{Path: "f", StartLine: 900}); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
}

// A line may have no end: of a file with holes, for example, or one that is written while it is read.
func TestReadStopsWithinALine(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	line := strings.NewReader(strings.Repeat("x", 4<<20))
	if _, err := readLines(ctx, bufio.NewReader(line), 2, 0, 1024); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	if line.Len() == 0 {
		t.Error("it read to the end")
	}
}

func TestSeveralRootsAreDirectoriesOfTheFirstLevel(t *testing.T) {
	one, first := space(t, map[string]string{"a.txt": "needle one"})
	_, second := space(t, map[string]string{"b/b.txt": "needle two"})
	if one == nil {
		t.Fatal("no space")
	}
	f := &files{}
	if err := f.configure(t.Context(), settings{Roots: map[string]string{"docs": first, "src": second}, MaxReadBytes: 1024, MaxWriteBytes: 1024}); err != nil {
		t.Fatal(err)
	}
	r, err := f.read(t.Context(), readInput{Path: "src/b/b.txt", StartLine: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(t, r)[0]; got != "needle two" {
		t.Errorf("content = %q", got)
	}
	_, err = f.read(t.Context(), readInput{Path: "a.txt", StartLine: 1})
	fault(t, err, pluginsdk.InvalidArguments, "docs, src")
	found, err := f.search(t.Context(), searchInput{Pattern: "needle", Path: ".", Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found.Matches {
		got = append(got, fmt.Sprintf("%s:%d", m.Path, m.Line))
	}
	if diff := cmp.Diff([]string{"docs/a.txt:1", "src/b/b.txt:1"}, got); diff != "" {
		t.Error(diff)
	}
}
