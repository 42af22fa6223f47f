package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/hermesd/hermesd/pluginsdk"
)

type readInput struct {
	Path      string `json:"path" jsonschema:"path of the file, relative to the working directory" minLength:"1" maxLength:"4096"`
	StartLine int    `json:"start_line,omitempty" jsonschema:"first line to read, counted from 1" default:"1" minimum:"1"`
	Lines     int    `json:"lines,omitempty" jsonschema:"how many lines to read; 0 means up to the end or the size limit" minimum:"0"`
}

// sniffed is how much of a file is looked at to tell text from everything else.
const sniffed = 8 << 10

func (f *files) read(ctx context.Context, in readInput) (*pluginsdk.Result, error) {
	at, err := f.space.resolve(in.Path)
	if err != nil {
		return nil, err
	}
	file, info, err := at.openFile()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 64<<10)
	head, err := r.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, at.explain(err)
	}
	if !isText(head) {
		return f.image(at, r, http.DetectContentType(head), info.Size())
	}
	part, err := readLines(ctx, r, in.StartLine, in.Lines, f.MaxReadBytes)
	if err != nil {
		return nil, at.explain(err)
	}
	if part.lines == 0 && in.StartLine > 1 {
		return nil, pluginsdk.InvalidArgument("/start_line", "%s has only %d lines", at.show, part.seen)
	}
	result := &pluginsdk.Result{Content: []pluginsdk.Content{pluginsdk.Text(part.text)}}
	if note := part.note(in.StartLine); note != "" {
		result.Content = append(result.Content, pluginsdk.Text(note))
	}
	return result, nil
}

// isText reports whether head begins a UTF-8 text. A character that the end of head cuts is no fault.
func isText(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 {
			return len(head) < utf8.UTFMax && !utf8.FullRune(head)
		}
		head = head[n:]
	}
	return true
}

// image answers with an image that fits the limit; every other binary file is refused.
func (f *files) image(at place, r io.Reader, mimeType string, size int64) (*pluginsdk.Result, error) {
	if !strings.HasPrefix(mimeType, "image/") {
		return nil, pluginsdk.InvalidArgument("/path", "%s is no UTF-8 text but a binary file (%s, %d bytes)", at.show, mimeType, size)
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(f.MaxReadBytes)+1))
	if err != nil {
		return nil, at.explain(err)
	}
	if len(data) > f.MaxReadBytes {
		return nil, pluginsdk.Errorf(pluginsdk.ResultTooLarge, "%s is an image of %d bytes; the limit is %d", at.show, size, f.MaxReadBytes)
	}
	return &pluginsdk.Result{Content: []pluginsdk.Content{pluginsdk.Image(mimeType, data)}}, nil
}

// part is a run of lines.
type part struct {
	text  string
	lines int  // in text; the last may be cut
	seen  int  // lines of the file that were passed, those of text included
	more  bool // the file goes on
	cut   bool // the last line did not fit
}

func (p part) note(start int) string {
	switch {
	case p.cut:
		return fmt.Sprintf("[line %d is cut: it is longer than the size limit]", start+p.lines-1)
	case p.more:
		return fmt.Sprintf("[lines %d to %d; the file goes on: read on with start_line %d]", start, start+p.lines-1, start+p.lines)
	default:
		return ""
	}
}

// readLines reads count lines (0: all) from line start on, at most limit bytes. What does not end inside the limit is left
// out, except where it is the first line.
func readLines(ctx context.Context, r *bufio.Reader, start, count, limit int) (part, error) {
	var (
		p    part
		text strings.Builder
		line []byte // the current line as far as it fits
		long bool   // it does not fit
	)
	for {
		if err := ctx.Err(); err != nil { // also within a line, which may have no end
			return p, err
		}
		chunk, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return p, err
		}
		if len(chunk) == 0 && len(line) == 0 && !long {
			break // the end, and not inside a line
		}
		if wanted := p.seen >= start-1; wanted {
			fits := limit - text.Len() - len(line)
			if len(chunk) > fits {
				chunk, long = chunk[:max(fits, 0)], true
			}
			line = append(line, chunk...)
			if long {
				if text.Len() > 0 {
					p.more = true
					break
				}
				text.Write(trimRune(line))
				p.lines, p.seen, p.cut, p.more = 1, p.seen+1, true, true
				break
			}
			if err == nil && (len(chunk) == 0 || chunk[len(chunk)-1] != '\n') {
				continue // the line goes on
			}
			text.Write(line)
			line = line[:0]
			p.lines++
			p.seen++
		} else if err != nil || chunk[len(chunk)-1] == '\n' {
			p.seen++
		}
		if err != nil {
			break
		}
		if count > 0 && p.lines == count {
			_, err := r.Peek(1)
			p.more = err == nil
			break
		}
	}
	p.text = strings.ToValidUTF8(text.String(), "\uFFFD")
	return p, nil
}

// trimRune drops a character that a cut left incomplete.
func trimRune(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
