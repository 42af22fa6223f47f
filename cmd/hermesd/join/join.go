// Package join stands between one MCP client's streams and the running daemon. It passes messages on as they are and
// remembers enough of them to outlive the daemon: when the connection breaks, what was in flight is answered, and once the
// daemon is back the client's session is opened again with the client's own words.
//
// A first daemon may have the client's streams itself; then it reads along, to remember the same (along.go).
//
// No message is sent twice: what was handed to a daemon that went away is answered with an error, never repeated here.
package join

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
)

const (
	// minWait and maxWait bound the time between two attempts to join; it doubles.
	minWait, maxWait = 100 * time.Millisecond, 5 * time.Second
	// resumeTime bounds how long a daemon may take to open a session again.
	resumeTime = 10 * time.Second
	// refusalTime bounds how long a client that the daemon refuses may take to ask something and be told why.
	refusalTime = 5 * time.Second
)

// Conn is one stream to the daemon: newline-delimited JSON-RPC in both directions.
type Conn interface {
	io.ReadWriteCloser
	// CloseWrite says that nothing more will be written. It is not called during a Write.
	CloseWrite() error
}

// Options say who is joined. Dial, In and Out are required.
type Options struct {
	// Dial reaches the daemon, or says why it does not and what to do. The connection ends with the context at the latest.
	Dial func(ctx context.Context) (Conn, error)
	// In is what the client says, Out what it hears.
	In  io.Reader
	Out io.Writer
	// HandOver, if it is not nil, reaches the first daemon in the place of Dial, and gives it In and Out.
	HandOver func(ctx context.Context) (admin.Along, error)
	// Logger is told when the daemon goes and comes; nil discards.
	Logger *slog.Logger
}

// Run joins the client to the daemon until the client ends In, Out breaks or ctx ends. It fails if there is no daemon to
// begin with or if that refuses the client; a daemon that goes away later is waited for.
func Run(ctx context.Context, o *Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	looking, giveUp := context.WithCancel(ctx)
	defer giveUp()
	first, err := reach(ctx, o)
	if err != nil {
		return err
	}
	f := &front{
		dial: o.Dial, in: o.In, out: o.Out, logger: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), stop: cancel, giveUp: giveUp,
		pending: map[string]*request{}, poke: make(chan struct{}, 1),
	}
	if err := f.joined(first); err != nil {
		return err
	}
	if first.along == nil {
		go f.listen(f.in) // ends with In; a program that joins ends with its streams
	}
	return f.run(ctx, looking, first)
}

// reach is the link to the first daemon.
func reach(ctx context.Context, o *Options) (*link, error) {
	if o.HandOver == nil {
		conn, err := o.Dial(ctx)
		if err != nil {
			return nil, err
		}
		return newLink(conn), nil
	}
	along, err := o.HandOver(ctx)
	if err != nil {
		return nil, err
	}
	l := newLink(handedOver{along})
	l.along = along
	return l, nil
}

// front is the state of one client.
type front struct {
	dial   func(ctx context.Context) (Conn, error)
	logger *slog.Logger
	stop   context.CancelFunc // ends everything
	giveUp context.CancelFunc // looks for no other daemon
	in     io.Reader          // what the client says, once it is read here
	poke   chan struct{}      // a request came while the daemon was away: look now

	writing sync.Mutex // of out
	out     io.Writer

	mu      sync.Mutex
	link    *link               // nil while the daemon is away
	away    error               // why it is
	pending map[string]*request // by keyOf their id
	session session
	links   int
	ended   bool  // the client has said everything
	failure error // of the client's streams
}

// link is one connection to a daemon.
type link struct {
	Conn
	along admin.Along // the same, of a daemon that has the client's streams; nil of others
	lines *bufio.Reader
	gone  chan struct{} // closed when what it leaves open is answered
	// number counts links from 1; asked are the daemon's open requests by the id that the client knows them by. The
	// front's mutex guards both.
	number int
	asked  map[string]json.RawMessage
	heard  bool
	// resumed says that a session was opened in the client's place; listening are the client's subscriptions that were
	// renewed and not acknowledged yet, by keyOf their id, and news what they want to hear first.
	resumed   bool
	listening map[string]bool
	news      [][]byte
}

func newLink(c Conn) *link {
	return &link{Conn: c, lines: bufio.NewReaderSize(c, 64<<10), gone: make(chan struct{}), asked: map[string]json.RawMessage{}}
}

// next is the daemon's next line. What a daemon sends is bounded by the daemon.
func (l *link) next() ([]byte, error) { return l.lines.ReadBytes('\n') }

// request is one of the client's requests that is not answered yet.
type request struct {
	id     json.RawMessage
	method string
	params json.RawMessage // of those that a session remembers
	unsent bool            // the link was broken already
}

// run hears one daemon after the other. It looks for the next until looking ends.
func (f *front) run(ctx, looking context.Context, l *link) error {
	wait := minWait
	for {
		err := f.hear(l)
		if errors.Is(err, admin.ErrNotTaken) {
			next, rerr := f.relay(ctx, l)
			if rerr == nil {
				l = next
				continue
			}
			err = fmt.Errorf("%w: %w", admin.ErrBroken, rerr) // it has gone meanwhile
		}
		over, told := f.lost(l, err)
		f.close(l)
		if l.along != nil && !over {
			go f.listen(f.in)
		}
		switch ended := errors.Is(err, io.EOF); {
		case ctx.Err() != nil:
			return f.failed()
		case !ended && !l.heard && l.number == 1 && !errors.Is(err, admin.ErrBroken):
			if !told {
				f.awaitRequest(looking)
			}
			return err // this client is not wanted
		case over && !ended:
			return errors.Join(f.failed(), err)
		case over:
			return f.failed()
		case l.heard:
			wait = minWait
		}
		f.logger.Warn("the daemon is away; it is joined again as soon as it runs", "reason", err)
		if l, wait = f.rejoin(ctx, looking, wait); l == nil {
			return f.failed()
		}
		f.logger.Info("the daemon is joined again")
	}
}

// relay joins the first daemon, which did not take the client's streams, by a link instead. Nothing was read of them: what the
// client says first is for that link, and must not be turned away.
func (f *front) relay(ctx context.Context, l *link) (*link, error) {
	f.close(l)
	conn, err := f.dial(ctx)
	if err != nil {
		return nil, err
	}
	l = newLink(conn)
	f.mu.Lock()
	f.links = 0 // so that it is the first
	f.mu.Unlock()
	if err := f.joined(l); err != nil {
		f.close(l)
		return nil, err
	}
	go f.listen(f.in)
	return l, nil
}

// awaitRequest waits until a request was turned away: a client that was not told why its server ended shows nothing.
func (f *front) awaitRequest(looking context.Context) {
	timer := time.NewTimer(refusalTime)
	defer timer.Stop()
	select {
	case <-f.poke:
	case <-looking.Done():
	case <-timer.C:
	}
}

// rejoin waits for a daemon. It returns nil if the client or ctx ended first. A link outlives looking.
func (f *front) rejoin(ctx, looking context.Context, wait time.Duration) (*link, time.Duration) {
	for {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-f.poke:
		case <-looking.Done():
			timer.Stop()
			return nil, wait
		}
		timer.Stop()
		wait = min(2*wait, maxWait)
		conn, err := f.dial(ctx)
		if err != nil {
			f.refused(err)
			continue
		}
		l := newLink(conn)
		news, err := f.resume(looking, l)
		if err == nil {
			err = f.joined(l)
		}
		if err == nil {
			for _, n := range append(news, l.news...) {
				f.send(n)
			}
			return l, wait
		}
		f.refused(err)
		f.close(l)
	}
}

func (f *front) close(l *link) {
	if err := l.Close(); err != nil {
		f.logger.Debug("connection closed", "error", err)
	}
}

// failed is what went wrong with the client's streams.
func (f *front) failed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failure
}

// joined makes a link the one that messages go to.
func (f *front) joined(l *link) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return errors.New("the client has ended")
	}
	if l.resumed && f.session.initialized {
		if _, err := l.Write([]byte(`{"jsonrpc":"2.0","method":"` + methodInitialized + "\"}\n")); err != nil {
			return err
		}
	}
	if err := f.listenAgain(l); err != nil {
		return err
	}
	f.links++
	l.number, f.link = f.links, l
	return nil
}

// lost answers what a broken link leaves open, and takes back the daemon's questions. It reports whether the client has
// said everything, and whether it was told anything.
func (f *front) lost(l *link, cause error) (over, told bool) {
	refused := !l.heard && errors.Is(cause, admin.ErrRefused)
	if errors.Is(cause, io.EOF) {
		cause = errors.New("the daemon has stopped")
	}
	f.mu.Lock()
	pending, asked := f.pending, l.asked
	f.pending, f.link, f.away, over = map[string]*request{}, nil, cause, f.ended
	for id, r := range pending {
		if r.lasts() && !over && !refused {
			f.pending[id] = r
			delete(pending, id)
		}
	}
	f.mu.Unlock()
	for id := range asked {
		f.send(cancelled(id))
	}
	for _, r := range pending {
		e := interrupted(r.method)
		if refused || r.unsent {
			e = absent(cause)
		}
		f.send(answer(r.id, e))
	}
	close(l.gone)
	return over, len(pending) > 0
}

// refused notes why the daemon cannot be joined right now.
func (f *front) refused(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = err
}

// end lets the daemon finish what it was asked and closes.
func (f *front) end(err error) {
	f.mu.Lock()
	f.failure = errors.Join(f.failure, err)
	f.ended = true
	l := f.link
	f.mu.Unlock()
	f.giveUp()
	if l == nil {
		return
	}
	if err := l.CloseWrite(); err != nil {
		f.logger.Debug("the end of the client's stream did not reach the daemon", "error", err)
	}
}

// send writes one message to the client.
func (f *front) send(raw []byte) { f.write(append(raw, '\n')) }

// write writes whole lines to the client. A client that takes no more ends everything.
func (f *front) write(lines []byte) {
	if len(lines) == 0 {
		return
	}
	f.writing.Lock()
	_, err := f.out.Write(lines)
	f.writing.Unlock()
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure == nil {
		f.failure = fmt.Errorf("the client takes no more: %w", err)
	}
	f.stop()
}

// hear passes on what the daemon says until the link breaks.
func (f *front) hear(l *link) error {
	if l.along != nil {
		return f.readAlong(l)
	}
	var said []byte // and not passed on yet
	for {
		line, err := l.next()
		if err != nil {
			return err // half a line is no message
		}
		l.heard = true
		said = f.fromDaemon(l, said, line)
		if !another(l.lines) {
			f.write(said)
			said = reuse(said)
		}
	}
}

// another reports whether a whole line waits to be read. What waits already is passed on together.
func another(r *bufio.Reader) bool {
	waiting, err := r.Peek(r.Buffered())
	return err == nil && bytes.IndexByte(waiting, '\n') >= 0
}

// fromDaemon appends to said what the client hears of a line, which ends with a newline.
func (f *front) fromDaemon(l *link, said, line []byte) []byte {
	raw := line[:len(line)-1]
	m := parse(raw)
	if m.kind == aResponse && ours(m.id) {
		return said // to what was said in the client's place
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch m.kind {
	case aResponse:
		if r := f.pending[keyOf(m.id)]; r != nil {
			if r.lasts() && m.result != nil {
				return said // the daemon is ending; the next one goes on with it
			}
			delete(f.pending, keyOf(m.id))
			f.session.answered(r, m)
		}
	case aRequest:
		id := l.clientsID(m.id)
		l.asked[string(id)] = bytes.Clone(m.id)
		if l.number > 1 {
			raw = m.withID(id)
		}
	case aNotification:
		switch m.method {
		case methodAcknowledged:
			if id := keyOf(subscriptionOf(m.params)); l.listening[id] {
				delete(l.listening, id)
				return said // the client knows
			}
		case methodCancelled:
			id := l.clientsID(requestID(m.params))
			delete(l.asked, string(id))
			if l.number > 1 {
				raw = cancelled(string(id))
			}
		}
	}
	return append(append(said, raw...), '\n')
}

// clientsID is what the client knows a request of the daemon by. Every daemon counts from 1, so that the ids of a later
// one would be taken for those of an earlier.
func (l *link) clientsID(id json.RawMessage) json.RawMessage {
	if l.number == 1 {
		return id
	}
	return quote(fmt.Sprintf("%d:%s", l.number, id))
}
