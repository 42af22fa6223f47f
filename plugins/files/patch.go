package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/hermesd/hermesd/pluginsdk"
)

type patchInput struct {
	Path  string `json:"path" jsonschema:"path of the file, relative to the working directory" minLength:"1" maxLength:"4096"`
	Edits []edit `json:"edits" jsonschema:"the replacements, made one after the other" minItems:"1" maxItems:"100"`
	Dry   bool   `json:"dry_run,omitempty" jsonschema:"only say what would be changed"`
}

type edit struct {
	Old string `json:"old" jsonschema:"the exact text to replace, with enough around it to occur only once" minLength:"1"`
	New string `json:"new" jsonschema:"what takes its place; empty deletes"`
	All bool   `json:"all,omitempty" jsonschema:"replace every occurrence"`
}

type patchOutput struct {
	Path         string `json:"path"`
	Replacements int    `json:"replacements"`
	Lines        []int  `json:"lines" jsonschema:"where each edit's first replacement was made, as lines at that moment"`
	Bytes        int    `json:"bytes" jsonschema:"size of the file afterwards"`
}

func (f *files) patch(ctx context.Context, in patchInput) (patchOutput, error) {
	if err := f.writable(ctx); err != nil {
		return patchOutput{}, err
	}
	at, err := f.space.resolve(in.Path)
	if err != nil {
		return patchOutput{}, err
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	mode, _, err := at.writeTarget()
	if err != nil {
		return patchOutput{}, err
	}
	text, err := f.readWhole(at)
	if err != nil {
		return patchOutput{}, err
	}
	out := patchOutput{Path: at.show}
	text, out.Replacements, out.Lines, err = applyEdits(text, in.Edits)
	if err != nil {
		return patchOutput{}, err
	}
	if out.Bytes = len(text); out.Bytes > f.MaxWriteBytes {
		return patchOutput{}, pluginsdk.InvalidArgument("/edits", "%s would have %d bytes; the limit is %d", at.show, out.Bytes, f.MaxWriteBytes)
	}
	if in.Dry {
		return out, nil
	}
	return out, at.replace([]byte(text), mode)
}

// readWhole reads a text file that may be written again.
func (f *files) readWhole(at place) (string, error) {
	file, _, err := at.openFile()
	if err != nil {
		return "", err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, int64(f.MaxWriteBytes)+1))
	switch {
	case err != nil:
		return "", at.explain(err)
	case len(b) > f.MaxWriteBytes:
		return "", pluginsdk.InvalidArgument("/path", "%s is larger than %d bytes, the limit for patches", at.show, f.MaxWriteBytes)
	case !utf8.Valid(b):
		return "", pluginsdk.InvalidArgument("/path", "%s is no UTF-8 text", at.show)
	}
	return string(b), nil
}

// applyEdits makes every edit or none. lines says where each edit's first replacement was made.
func applyEdits(text string, edits []edit) (out string, replacements int, lines []int, err error) {
	for i, e := range edits {
		at := strings.Index(text, e.Old)
		count := strings.Count(text, e.Old)
		// Count passes over overlapping occurrences, which would be ambiguous all the same.
		ambiguous := count > 1 || count == 1 && strings.Contains(text[at+1:], e.Old)
		switch {
		case e.Old == "":
			return "", 0, nil, pluginsdk.InvalidArgument(fmt.Sprintf("/edits/%d/old", i), "the text to replace is empty; use files_write for a new file")
		case count == 0:
			return "", 0, nil, pluginsdk.InvalidArgument(fmt.Sprintf("/edits/%d/old", i), "edit %d: the old text does not occur; nothing was changed. %s", i+1, nearest(text, e.Old))
		case ambiguous && !e.All:
			return "", 0, nil, pluginsdk.InvalidArgument(fmt.Sprintf("/edits/%d/old", i),
				"edit %d: the old text occurs %s; nothing was changed. Add text around it until it is unique, or set all", i+1, occurrences(text, e.Old))
		}
		lines = append(lines, lineAt(text, at))
		text = strings.ReplaceAll(text, e.Old, e.New)
		replacements += count
	}
	return text, replacements, lines, nil
}

// lineAt is the number of the line that holds the byte at offset.
func lineAt(text string, offset int) int { return strings.Count(text[:offset], "\n") + 1 }

// occurrences says how often and in which lines, of the first few, old occurs.
func occurrences(text, old string) string {
	const shown = 5
	var lines []string
	count, from := 0, 0
	for {
		at := strings.Index(text[from:], old)
		if at < 0 {
			break
		}
		if count++; count <= shown {
			lines = append(lines, fmt.Sprint(lineAt(text, from+at)))
		}
		from += at + 1
	}
	more := ""
	if count > shown {
		more = ", …"
	}
	return fmt.Sprintf("%d times (lines %s%s)", count, strings.Join(lines, ", "), more)
}
