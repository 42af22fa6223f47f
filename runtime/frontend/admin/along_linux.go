package admin

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// readEvery is how long what happens may wait to be read while a client is busy: its `hermesd mcp` is woken once for all
	// of it.
	readEvery = 20 * time.Millisecond
	// readSoon is how much may have come since it last waited before it reads on at once, in bytes: the daemon must not wait.
	readSoon = 64 << 10
)

// HandOver is Attach for a client whose streams can be handed over (see CanHandOver). They are not to be touched before the
// session has ended.
func (c *Client) HandOver(ctx context.Context, agent, client, via string, in, out *os.File) (Along, error) {
	a := &along{in: handed{file: in}, out: handed{file: out}, part: make([]byte, maxFrame), room: make([]byte, unix.CmsgSpace(4*maxDescriptors))}
	a.framed.r = bufio.NewReaderSize(copies{a}, 64<<10)
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
	if err == nil {
		err = a.begin(conn.(*net.UnixConn), opening{Agent: agent, Client: client, Via: via})
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	a.stop = context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.left = true
		if !a.closed {
			unix.Shutdown(a.fd, unix.SHUT_RDWR) // reading tells
		}
	})
	return a, nil
}

// along is the other side of handedOver. It reads a connection that the poller does not know, which would wake the process
// for each frame even if nobody reads.
type along struct {
	framed  framed // its reading half
	in, out handed
	part    []byte
	room    []byte // for descriptors
	kept    []int  // the reading ends of the daemon's pipes: two of what it heard, two of what it said
	heard   int    // frames
	said    int
	got     int // bytes since it last waited

	stop   func() bool
	mu     sync.Mutex // of what follows
	fd     int
	left   bool // by this side
	closed bool
}

// handed is a stream that was handed over.
type handed struct {
	file  *os.File
	flags int
}

// begin sends the opening, with the two streams, and takes the connection from the poller.
func (a *along) begin(conn *net.UnixConn, o opening) error {
	defer conn.Close()
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint32([]byte{frameHandOver}, uint32(len(raw)))
	err = a.in.use(func(in int) error {
		return a.out.use(func(out int) error {
			_, _, err := conn.WriteMsgUnix(append(head, raw...), unix.UnixRights(in, out), nil)
			return err
		})
	})
	if err != nil {
		return err
	}
	c, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	cerr := c.Control(func(fd uintptr) { a.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3) })
	if err = errors.Join(cerr, err); err != nil {
		return err
	}
	if err := unix.SetNonblock(a.fd, false); err != nil {
		return errors.Join(err, unix.Close(a.fd))
	}
	return nil
}

// use calls do with the descriptor, after it has noted its flags.
func (h *handed) use(do func(fd int) error) error {
	return control(h.file, func(fd int) (err error) {
		if h.flags, err = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil {
			return err
		}
		return do(fd)
	})
}

// restore gives the stream its flags again, which a daemon that was killed could not.
func (h *handed) restore() error {
	return control(h.file, func(fd int) error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, h.flags)
		return err
	})
}

// Next implements [Along].
func (a *along) Next() (Event, error) {
	for {
		kind, size, err := a.framed.head()
		if err != nil {
			return Event{}, err
		}
		switch kind {
		case frameEnd:
			return Event{}, a.framed.end(size)
		case frameKept, frameHeard, frameSaid, frameData:
		default:
			return Event{}, errVersions
		}
		text := a.part[:size]
		if _, err := io.ReadFull(a.framed.r, text); err != nil {
			return Event{}, broke(err)
		}
		switch {
		case kind == frameKept:
			continue
		case kind == frameHeard && size > 0:
			a.heard++
		case kind == frameSaid:
			a.said++
		}
		return Event{EventKind(kind), text}, nil
	}
}

// copies reads an along's connection.
type copies struct{ *along }

// Read implements [io.Reader].
func (a copies) Read(p []byte) (int, error) {
	for wait := unix.MSG_DONTWAIT; ; {
		n, oobn, _, _, err := unix.Recvmsg(a.fd, p, a.room, unix.MSG_CMSG_CLOEXEC|wait)
		if oobn > 0 {
			more, perr := descriptors(a.room[:oobn])
			a.kept, err = append(a.kept, more...), errors.Join(err, perr)
		}
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN) && 0 < a.got && a.got < readSoon:
			a.got = 0
			time.Sleep(readEvery)
		case errors.Is(err, unix.EAGAIN):
			a.got, wait = 0, 0
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			a.got += n
			return n, nil
		}
	}
}

// TakeBack implements [Along].
func (a *along) TakeBack() (*Left, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left {
		return nil, context.Canceled // the daemon may be writing
	}
	if len(a.kept) != maxDescriptors { // it never began
		return &Left{}, errors.Join(a.in.restore(), a.out.restore())
	}
	heard, said := a.kept[:2], a.kept[2:]
	unheard, err1 := left(heard[a.heard%2])
	unsaid, err2 := left(said[(a.said+1)%2])
	unknown, err3 := left(said[a.said%2])
	return &Left{Unheard: unheard, Unsaid: unsaid, Unknown: unknown}, errors.Join(err1, err2, err3, a.in.restore(), a.out.restore())
}

// Close implements [Along].
func (a *along) Close() error {
	a.stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	closeAll(a.kept)
	return unix.Close(a.fd)
}
