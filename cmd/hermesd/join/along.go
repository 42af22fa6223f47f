package join

import (
	"bytes"
	"errors"
	"io"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
)

// A first daemon that was handed the client's streams speaks with the client itself, and what is here only reads along: it
// remembers what a link would have made it remember, and writes nothing. When that daemon has gone, the streams are taken
// back, and are not handed over again: from then on every daemon is joined by a link. So a client loses the quicker way at
// its daemon's first restart and nothing else, and there is one way of going from a daemon to the next.

// handedOver is the link of a daemon that has the client's streams. Nothing is written to it: what the client says, and its
// end, the daemon reads.
type handedOver struct{ admin.Along }

// Read implements [Conn].
func (handedOver) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Write implements [Conn].
func (handedOver) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// CloseWrite implements [Conn].
func (handedOver) CloseWrite() error { return nil }

// readAlong follows what a daemon hears from the client and says to it until that has ended. It then puts what the daemon has
// not heard to its end before what is read of the client's stream, and finishes what the daemon was saying.
func (f *front) readAlong(l *link) error {
	heard, said := cutter{limit: mcp.MaxLine}, cutter{}
	var b bundle
	hear := func(line []byte) {
		if len(line) <= mcp.MaxLine { // or the daemon complains
			f.fromClient(&b, bytes.TrimRight(line, "\r\n"))
			b = bundle{link: l, lines: reuse(b.lines)} // the daemon has it
		}
	}
	var says []byte
	say := func(line []byte) {
		l.heard = true
		says = f.fromDaemon(l, says, line)
	}
	for {
		e, err := l.along.Next()
		if err != nil {
			return errors.Join(err, f.takeBack(l, &heard, &said, say))
		}
		switch {
		case e.Kind == admin.Heard && len(e.Text) > 0:
			heard.add(e.Text, hear)
		case e.Kind == admin.Heard:
			hear(heard.part) // a last line needs no end
			f.end(nil)
		case e.Kind == admin.Said:
			said.add(e.Text, say)
		case e.Kind == admin.Passed:
			said.add(e.Text, say)
			f.write(says)
		}
		says = reuse(says)
	}
}

// takeBack makes the client's streams those of this process again.
func (f *front) takeBack(l *link, heard, said *cutter, say func(line []byte)) error {
	left, err := l.along.TakeBack()
	if err != nil {
		return err
	}
	said.add(left.Unknown, say)
	f.write(append(left.Unsaid, left.Unknown...))
	if len(said.part) > 0 {
		f.write([]byte{'\n'}) // half a line is no message, and must not become a part of the next
	}
	f.in = io.MultiReader(bytes.NewReader(heard.part), bytes.NewReader(left.Unheard), f.in)
	return nil
}

// cutter makes lines of pieces.
type cutter struct {
	part  []byte // of a line
	limit int    // of a line that is kept to its end, in bytes; 0 has none
}

// add calls line for every line that ends in a piece, with its end. What it gets is overwritten later.
func (c *cutter) add(piece []byte, line func([]byte)) {
	for len(piece) > 0 {
		end := bytes.IndexByte(piece, '\n') + 1
		switch {
		case end == 0:
			c.keep(piece)
			return
		case len(c.part) == 0:
			line(piece[:end])
		default:
			c.keep(piece[:end])
			line(c.part)
			c.part = reuse(c.part)
		}
		piece = piece[end:]
	}
}

// keep keeps a part of a line, of one that is too long no more than shows that.
func (c *cutter) keep(part []byte) {
	if c.limit > 0 {
		part = part[:min(len(part), c.limit+1-len(c.part))]
	}
	c.part = append(c.part, part...)
}
