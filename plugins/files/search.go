package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/hermesd/hermesd/pluginsdk"
)

type searchInput struct {
	Pattern    string `json:"pattern" jsonschema:"what to find in a line" minLength:"1" maxLength:"1000"`
	Regexp     bool   `json:"regexp,omitempty" jsonschema:"the pattern is a regular expression (RE2) instead of plain text"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"upper and lower case are the same"`
	Path       string `json:"path,omitempty" jsonschema:"the directory or file to search, relative to the working directory" default:"." maxLength:"4096"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files that match, for example *.go or src/**/*.ts" maxLength:"500"`
	Context    int    `json:"context,omitempty" jsonschema:"how many lines to show before and after each match" minimum:"0" maximum:"10"`
	Hidden     bool   `json:"hidden,omitempty" jsonschema:"also files and directories whose names begin with a dot"`
	Limit      int    `json:"limit,omitempty" jsonschema:"most matches" default:"100" minimum:"1" maximum:"1000"`
}

type match struct {
	Path   string   `json:"path"`
	Line   int      `json:"line"`
	Text   string   `json:"text"`
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

type searchOutput struct {
	Matches   []match `json:"matches"`
	Files     int     `json:"files" jsonschema:"how many files were searched"`
	Skipped   int     `json:"skipped,omitempty" jsonschema:"files that are binary, too large or unreadable"`
	Truncated bool    `json:"truncated,omitempty" jsonschema:"there may be more matches"`
}

const (
	maxSearched   = 16 << 20 // bytes of a file; larger ones are skipped
	maxSearchLine = 64 << 10 // what is looked at of one line
	maxMatchText  = 500      // bytes of a line that are shown
	// maxMatchBytes bounds the texts of one answer: with context, many matches would be more than a model can take.
	maxMatchBytes = 256 << 10
	allLevels     = 100
)

func (f *files) search(ctx context.Context, in searchInput) (searchOutput, error) {
	s := &searcher{in: in, out: searchOutput{Matches: []match{}}}
	var err error
	if s.re, err = in.compile(); err != nil {
		return searchOutput{}, err
	}
	globbed, err := compileGlob(in.Glob)
	if err != nil {
		return searchOutput{}, err
	}
	tops, err := f.space.tops(in.Path)
	if err != nil {
		return searchOutput{}, err
	}
	if len(tops) == 1 {
		if info, err := tops[0].root.Stat(tops[0].name); err != nil {
			return searchOutput{}, tops[0].explain(err)
		} else if !info.IsDir() {
			if err := tops[0].regular(info); err != nil {
				return searchOutput{}, err
			}
			s.file(tops[0])
			return s.out, nil
		}
	}
	w := walk{depth: allLevels, hidden: in.Hidden}
	for _, top := range tops {
		err := w.run(ctx, top, func(p place, d entry) bool {
			if d.Type().IsRegular() && globbed.matches(p.show, d.Name()) {
				return s.file(p)
			}
			return true
		})
		if err != nil {
			return searchOutput{}, err
		}
	}
	s.out.Truncated = s.out.Truncated || w.truncated
	return s.out, nil
}

func (in searchInput) compile() (*regexp.Regexp, error) {
	expression := in.Pattern
	if !in.Regexp {
		expression = regexp.QuoteMeta(expression)
	}
	if in.IgnoreCase {
		expression = "(?i)" + expression
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, pluginsdk.InvalidArgument("/pattern", "the regular expression cannot be read: %w", err)
	}
	return re, nil
}

// searcher collects the matches of one call.
type searcher struct {
	in    searchInput
	re    *regexp.Regexp
	out   searchOutput
	bytes int // of the texts in out
}

// file searches one file and reports whether to go on.
func (s *searcher) file(p place) bool {
	f, info, err := p.openFile()
	if err != nil {
		s.out.Skipped++
		return true
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, maxSearchLine)
	head, err := r.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) || info.Size() > maxSearched || !isText(head) {
		s.out.Skipped++
		return true
	}
	s.out.Files++
	return s.lines(p, r)
}

// lines matches line by line, keeping the last lines as context and filling up the context of matches found before.
func (s *searcher) lines(p place, r *bufio.Reader) bool {
	var before []string
	open := len(s.out.Matches) // matches from here on may still want lines after them
	for number := 1; ; number++ {
		line, err := readLine(r)
		if err != nil {
			return true // the end, or a file that broke: what was found stands
		}
		text := cutLine(line)
		for i := open; i < len(s.out.Matches); i++ {
			s.out.Matches[i].After = append(s.out.Matches[i].After, text)
			s.bytes += len(text)
		}
		for open < len(s.out.Matches) && len(s.out.Matches[open].After) == s.in.Context {
			open++
		}
		if s.re.Match(line) {
			if len(s.out.Matches) == s.in.Limit || s.bytes > maxMatchBytes {
				s.out.Truncated = true
				return false
			}
			m := match{Path: p.show, Line: number, Text: text, Before: append([]string(nil), before...)}
			s.bytes += len(text) + len(strings.Join(before, ""))
			s.out.Matches = append(s.out.Matches, m)
			if s.in.Context == 0 {
				open = len(s.out.Matches)
			}
		}
		if before = append(before, text); len(before) > s.in.Context {
			before = before[len(before)-s.in.Context:]
		}
	}
}

// readLine reads a line without its end. Of a line that is too long, only the beginning.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line = bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// cutLine is what an answer shows of a line.
func cutLine(line []byte) string {
	cut := line
	if len(line) > maxMatchText {
		cut = line[:maxMatchText]
		for len(cut) > 0 && !utf8.RuneStart(line[len(cut)]) {
			cut = cut[:len(cut)-1]
		}
	}
	text := strings.ToValidUTF8(string(cut), "\uFFFD")
	if len(cut) < len(line) {
		text += "…"
	}
	return text
}
