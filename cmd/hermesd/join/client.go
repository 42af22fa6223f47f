package join

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
)

// listen takes what the client says until it ends.
func (f *front) listen(in io.Reader) {
	r := bufio.NewReaderSize(in, 64<<10)
	var b bundle
	for {
		line, err := mcp.ReadLine(r)
		switch {
		case errors.Is(err, mcp.ErrLineTooLong):
			f.send(complaint(err))
		case err != nil:
			if errors.Is(err, io.EOF) {
				err = nil
			}
			f.end(err)
			return
		default:
			f.fromClient(&b, line)
		}
		if !another(r) {
			f.deliver(&b)
		}
	}
}

// bundle is what the client said and a link has not been given yet.
type bundle struct {
	link     *link
	lines    []byte
	requests []json.RawMessage // the ids of those among them
}

// add adds a message.
func (b *bundle) add(raw []byte) { b.lines = append(append(b.lines, raw...), '\n') }

// deliver hands a bundle to its link. Where that is broken, it waits until the client has heard so, before it takes more.
func (f *front) deliver(b *bundle) {
	if len(b.lines) > 0 {
		if _, err := b.link.Write(b.lines); err != nil {
			f.unsent(b.requests)
			<-b.link.gone
		}
	}
	*b = bundle{lines: reuse(b.lines)}
}

// maxReuse bounds the buffer that is kept for the next messages, in bytes.
const maxReuse = 128 << 10

func reuse(b []byte) []byte {
	if cap(b) > maxReuse {
		return nil
	}
	return b[:0]
}

// fromClient takes a line of the client, message by message: a daemon answers each message of a batch by itself.
func (f *front) fromClient(b *bundle, line []byte) {
	var batch []json.RawMessage
	if rawjson.Elements(line, func(m json.RawMessage) { batch = append(batch, m) }) && len(batch) > 0 && rawjson.Valid(line) {
		for _, m := range batch {
			f.pass(b, m)
		}
		return
	}
	f.pass(b, line)
}

func (f *front) pass(b *bundle, raw []byte) {
	m := parse(raw)
	if m.kind == aRequest && !rawjson.Valid(raw) {
		m.kind = malformed // the daemon does not answer under its id
	}
	f.mu.Lock()
	l := f.link
	if m.kind == aNotification {
		switch m.method {
		case methodInitialized:
			f.session.initialized = true
		case methodCancelled:
			delete(f.pending, keyOf(requestID(m.params))) // nobody waits for an answer any more
		}
	}
	switch {
	case m.kind == blank:
		f.mu.Unlock()
		return
	case l == nil:
		reason := f.away
		f.mu.Unlock()
		f.turnAway(m, reason)
		return
	case m.kind == aRequest:
		r := &request{id: bytes.Clone(m.id), method: m.method} // of a line that need not be kept
		if remembered(m.method) {
			r.params = bytes.Clone(m.params)
		}
		f.pending[keyOf(m.id)] = r
	case m.kind == aResponse:
		id, ok := l.asked[string(m.id)]
		if !ok {
			f.mu.Unlock()
			return // to a daemon that is gone
		}
		delete(l.asked, string(m.id))
		if l.number > 1 {
			raw = m.withID(id)
		}
	}
	f.mu.Unlock()
	if b.link != l {
		f.deliver(b)
		b.link = l
	}
	b.add(raw)
	if m.kind == aRequest {
		b.requests = append(b.requests, m.id)
	}
}

// unsent notes that requests did not reach the daemon. Why is known, and said, when the link is lost, which it is.
func (f *front) unsent(ids []json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if r := f.pending[keyOf(id)]; r != nil {
			r.unsent = true
		}
	}
}

// turnAway answers what came while the daemon is away, and has it looked for.
func (f *front) turnAway(m *message, reason error) {
	switch m.kind {
	case aRequest:
		f.send(answer(m.id, absent(reason)))
	case malformed:
		f.send(answer(nil, absent(reason)))
	default:
		return
	}
	select {
	case f.poke <- struct{}{}:
	default: // it is being looked for
	}
}
