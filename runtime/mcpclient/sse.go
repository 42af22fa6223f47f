package mcpclient

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// event is one server-sent event (WHATWG HTML, "Server-sent events").
type event struct {
	name, id string
	data     []byte        // its own memory
	retry    time.Duration // 0 if not given
}

// readEvents calls visit with each event of a stream until visit returns false, or the stream ends: with nil at its proper
// end. An event of more than most bytes is an error.
func readEvents(stream io.Reader, most int, visit func(*event) bool) error {
	r := bufio.NewReaderSize(stream, 16<<10)
	e, seen := &event{}, false
	for {
		line, err := readField(r, most+len("data: "))
		if len(e.data) > most {
			err = &tooLargeError{most: most}
		}
		if err == nil && len(line) == 0 {
			if seen {
				e.data = bytes.TrimSuffix(e.data, []byte("\n"))
				if !visit(e) {
					return nil
				}
			}
			e, seen = &event{}, false
			continue
		}
		if err != nil { // an event without the empty line at its end does not count
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			seen = true
			if e.data == nil { // the usual case, one line: no copy
				e.data = append(value, '\n')
			} else {
				e.data = append(append(e.data, value...), '\n')
			}
		case "event":
			seen, e.name = true, string(value)
		case "id":
			seen, e.id = true, string(value)
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				seen, e.retry = true, time.Duration(ms)*time.Millisecond
			}
		}
	}
}

// readField reads up to and without the next newline, into memory of its own. A line beyond most bytes is an error at once: it
// may never end.
func readField(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > most+len("\r\n") {
			return nil, &tooLargeError{most: most}
		}
		line = extend(line, part)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		return line, err
	}
}
