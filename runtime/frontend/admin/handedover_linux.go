package admin

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermesd/hermesd/runtime/disclosure"
)

const (
	// maxHandedOver bounds the sessions whose streams the daemon has itself. Others are relayed.
	maxHandedOver = 256
	// perHandedOver is how many descriptors each of them takes.
	perHandedOver = 14
)

// mayHandOver is how many such sessions there may be: together they take half of this process's descriptors at most, so that
// some are left for who is relayed, for providers and for the store.
func mayHandOver() int32 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int32(min(maxHandedOver, limit.Cur/2/perHandedOver))
}

var (
	noDeadline = time.Time{}
	longAgo    = time.Unix(1, 0)
)

// handedOver is a session of a client that gave the daemon its own two streams: a call wakes no third process on its way.
// `hermesd mcp` reads along. It hears by a frame what the daemon reads from the client, before the daemon acts on it, and what
// it writes, before the client can read it; so it knows what is open when the daemon ends, and goes on as the one that passes
// messages. What is on its way then is in one of the pipes that it has, too (see kept).
//
// Nothing that a client does with what it handed over makes the daemon wait elsewhere than in the poller, which deadlines
// end; a socket is the exception, and is shut down.
type handedOver struct {
	*attached
	in, out *clientStream
	null    int // /dev/null
	through pipe
	own     []int // the descriptors of null and of all pipes
	over    bool  // they are closed; guarded by both mutexes

	reading sync.Mutex // of what follows
	heard   kept

	writing sync.Mutex // of what follows
	said    kept
	midline bool
	back    bool // the other side passes on what is said from now on

	released <-chan struct{}
}

// serveHandedOver serves a client on the streams that came with its opening, and closes them.
func (s *Server) serveHandedOver(ctx context.Context, agent *disclosure.Agent, a *attached, streams []int) error {
	if s.handed.Add(1) > mayHandOver() {
		s.handed.Add(-1)
		closeAll(streams)
		return errUnable(errors.New("too many clients have handed over theirs"))
	}
	defer s.handed.Add(-1)
	h, err := s.takeOver(a, streams)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() { // there is nothing to say for the other side: what comes is its end
		defer close(watched)
		defer cancel()
		if _, err := a.r.ReadByte(); err != nil {
			s.options.Logger.Debug("a client's hermesd mcp has ended, or is left", "error", err)
		}
	}()
	err = s.options.Streams.ServeStream(ctx, agent, h)
	err = errors.Join(err, a.conn.SetReadDeadline(longAgo))
	<-watched
	return errors.Join(err, h.finish(s.base))
}

// takeOver makes a session of a client's streams, and tells it. What it is given is closed with the session, or here.
func (s *Server) takeOver(a *attached, given []int) (h *handedOver, err error) {
	h = &handedOver{attached: a, released: s.released}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.closeStreams())
		}
	}()
	in, err := inspect(given[0], "standard input", a.conn.LocalAddr())
	out, oerr := inspect(given[1], "standard output", a.conn.LocalAddr())
	if err = errors.Join(err, oerr); err != nil { // both before either is touched: they may be one
		closeAll(given)
		return h, err
	}
	h.in, h.out = in, out
	if err = errors.Join(in.watch(), out.watch()); err != nil {
		return h, errUnable(err)
	}
	if h.out.socket {
		if err = unix.SetNonblock(h.out.fd, true); err != nil { // splice(2) looks at nothing else there
			return h, errUnable(err)
		}
	}
	for _, p := range h.pipes() {
		if *p, err = newPipe(); err != nil {
			return h, errUnable(err)
		}
		h.own = append(h.own, p.r, p.w)
	}
	if h.null, err = unix.Open(os.DevNull, unix.O_WRONLY|unix.O_CLOEXEC, 0); err != nil {
		return h, errUnable(err)
	}
	h.own = append(h.own, h.null)
	shared := unix.UnixRights(h.heard.pipes[0].r, h.heard.pipes[1].r, h.said.pipes[0].r, h.said.pipes[1].r)
	_, _, err = a.conn.WriteMsgUnix([]byte{frameKept, 0, 0, 0, 0}, shared, nil)
	return h, errors.Join(err, a.conn.SetWriteBuffer(copiesRoom))
}

// copiesRoom is how many bytes of frames the other side need not have read, as the kernel counts them, which is generously.
const copiesRoom = 1 << 20

func (h *handedOver) pipes() []*pipe {
	return []*pipe{&h.through, &h.heard.pipes[0], &h.heard.pipes[1], &h.said.pipes[0], &h.said.pipes[1]}
}

// Read implements [io.Reader].
func (h *handedOver) Read(p []byte) (int, error) {
	h.reading.Lock()
	defer h.reading.Unlock()
	if h.over {
		return 0, net.ErrClosed
	}
	now := h.heard.now()
	n, err := h.in.pull(now, min(len(p), keptSize))
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, errors.Join(io.EOF, h.frame(frameHeard, nil))
	}
	p = p[:n]
	if err := now.peek(&h.through, p); err != nil {
		return 0, err
	}
	if err := h.frame(frameHeard, p); err != nil {
		return 0, err
	}
	h.heard.told++
	return len(p), now.drop(h.null, len(p))
}

// Write implements [io.Writer].
func (h *handedOver) Write(p []byte) (written int, err error) {
	h.writing.Lock()
	defer h.writing.Unlock()
	if h.over {
		return 0, net.ErrClosed
	}
	if h.givenBack() {
		return h.attached.Write(p)
	}
	for piece := range slices.Chunk(p, keptSize) {
		if err := h.say(piece); err != nil {
			return written, err
		}
		written += len(piece)
	}
	return written, nil
}

// say writes what fits into a pipe.
func (h *handedOver) say(p []byte) error {
	now := h.said.now()
	n, err := again(func() (int, error) { return unix.Write(now.w, p) })
	switch {
	case err != nil:
		return inWords("write", err)
	case n < len(p):
		return io.ErrShortWrite
	}
	if err := h.frame(frameSaid, p); err != nil {
		return err
	}
	h.said.told++
	h.midline = p[len(p)-1] != '\n'
	return h.out.push(now, len(p))
}

// givenBack reports whether what is said is for the other side to pass on, and gives it the client's output then.
func (h *handedOver) givenBack() bool {
	select {
	case <-h.released:
		if !h.back && !h.midline {
			h.back = h.out.restore() == nil
		}
	default:
	}
	return h.back
}

// Close implements [io.Closer]: nothing is read any more. A write that hangs ends soon.
func (h *handedOver) Close() error {
	soon := time.Now().Add(endTime)
	return errors.Join(h.in.file.SetReadDeadline(longAgo), h.out.file.SetWriteDeadline(soon), h.conn.SetWriteDeadline(soon))
}

// finish waits until nothing is read or written, and gives the streams back.
func (h *handedOver) finish(base context.Context) error {
	err := h.Close()
	ended := make(chan error, 1)
	go func() {
		h.reading.Lock()
		defer h.reading.Unlock()
		h.writing.Lock()
		defer h.writing.Unlock()
		ended <- h.closeStreams()
	}()
	hangs := time.NewTimer(2 * endTime)
	defer hangs.Stop()
	select {
	case cerr := <-ended:
		return errors.Join(err, cerr)
	case <-hangs.C:
	}
	// Somebody let writing to the socket wait, or holds a pipe's lock in the kernel.
	if h.out.socket {
		err = errors.Join(err, control(h.out.file, func(fd int) error { return unix.Shutdown(fd, unix.SHUT_RDWR) }))
	}
	select {
	case cerr := <-ended:
		return errors.Join(err, cerr)
	case <-base.Done(): // the end of the daemon does not wait for that
		return errors.Join(err, errors.New("what a client handed over cannot be closed"))
	}
}

func (h *handedOver) closeStreams() (err error) {
	for _, s := range []*clientStream{h.in, h.out} {
		if s != nil {
			err = errors.Join(err, s.restore())
		}
	}
	for _, s := range []*clientStream{h.in, h.out} {
		if s != nil {
			err = errors.Join(err, s.file.Close())
		}
	}
	closeAll(h.own)
	h.own, h.over = nil, true
	return err
}
