package mcpclient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"sync"
)

// stdio carries messages over a process's pipes, one JSON message a line. Lines that are no JSON (a server that prints)
// are logged and skipped; a line that is too long fails the call that it answers, and no other.
type stdio struct {
	line   *line
	in     io.WriteCloser
	out    io.ReadCloser
	most   int
	writes chan write
	loops  sync.WaitGroup
}

// write is a message on its way into the pipe. A server that does not read blocks the pipe; callers then leave at their own
// deadline and only the writing goroutine waits.
type write struct {
	data []byte
	call *call
}

func newStdio(l *line, in io.WriteCloser, out io.ReadCloser, most int) *stdio {
	s := &stdio{line: l, in: in, out: out, most: most, writes: make(chan write)}
	s.loops.Go(s.write)
	s.loops.Go(s.read)
	return s
}

func (s *stdio) established(string) {}

// close closes the pipes, which ends both loops. The process is its owner's to stop.
func (s *stdio) close() {
	for _, err := range []error{s.in.Close(), s.out.Close()} {
		if err != nil && !errors.Is(err, fs.ErrClosed) {
			s.line.logger.Debug("closing a pipe of the server", "error", err)
		}
	}
	s.loops.Wait()
}

func (s *stdio) send(ctx context.Context, f *frame) (sent bool, err error) {
	select {
	case s.writes <- write{data: append(f.data, '\n'), call: f.call}:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-s.line.done():
		return false, s.line.err()
	}
}

func (s *stdio) write() {
	for {
		select {
		case w := <-s.writes:
			if w.call != nil {
				w.call.sent.Store(true)
			}
			if _, err := s.in.Write(w.data); err != nil {
				s.line.fail(fmt.Errorf("writing to the server: %w", err))
				return
			}
		case <-s.line.done():
			return
		}
	}
}

func (s *stdio) read() {
	r := bufio.NewReaderSize(s.out, 64<<10)
	for {
		data, over, err := readLine(r, s.most)
		switch {
		case over != nil:
			s.overlong(over)
		case len(data) > 0:
			s.line.receive(data, nil)
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the server closed its output")
			}
			s.line.fail(err)
			return
		}
	}
}

// answered finds the request that a line answers in what is left of it; servers write the id first or last.
var answered = regexp.MustCompile(`"id"\s*:\s*([0-9]{10})\b`)

// overlong fails the call that a line beyond the limit was meant for, if it can be told.
func (s *stdio) overlong(ends []byte) {
	s.line.noise.Warn("the server sent a line that is too long; it was skipped", "limit_bytes", s.most)
	for _, m := range answered.FindAllSubmatch(ends, -1) {
		id, err := strconv.ParseInt(string(m[1]), 10, 64)
		if err != nil {
			continue
		}
		if c := s.line.take(id); c != nil {
			c.finish(reply{err: &brokenError{sent: true, cause: &tooLargeError{most: s.most}}})
		}
	}
}

// tooLargeError is an answer beyond the limit of one message.
type tooLargeError struct{ most int }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the server's answer is bigger than %d bytes", e.most)
}

// keptEnd is how much of each end of an overlong line is kept to tell what it answers.
const keptEnd = 512

// readLine reads up to and without the next newline, into memory of its own. Of a line beyond most bytes only both ends are
// kept, in over, and the rest is read and dropped.
func readLine(r *bufio.Reader, most int) (data, over []byte, err error) {
	var tail []byte
	for {
		part, err := r.ReadSlice('\n')
		whole := err == nil
		if whole {
			part = part[:len(part)-1]
		}
		switch {
		case over != nil:
			tail = append(tail, part...)
			tail = tail[max(0, len(tail)-keptEnd):]
		case len(data)+len(part) > most:
			over = append(over, (append(data[:min(len(data), keptEnd):min(len(data), keptEnd)], part...))...)
			over = over[:min(len(over), keptEnd)]
			tail = append(tail, part[max(0, len(part)-keptEnd):]...)
			data = nil
		default:
			data = extend(data, part)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if over != nil {
			over = append(append(over, '\n'), tail...)
		}
		if n := len(data); n > 0 && data[n-1] == '\r' {
			data = data[:n-1]
		}
		return data, over, err
	}
}

// extend appends part to a line. It doubles the room: append alone grows a long line by a quarter at a time, copying it over
// and over.
func extend(line, part []byte) []byte {
	if cap(line)-len(line) < len(part) {
		line = slices.Grow(line, max(len(part), len(line)))
	}
	return append(line, part...)
}
