package admin

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// clientStream is one of a client's two streams, of which others have the same open file description: its client's
// `hermesd mcp`, and a shell, say.
type clientStream struct {
	file   *os.File // for its deadlines, and the poller's waiting
	raw    syscall.RawConn
	fd     int
	socket bool
	flags  int // as they came
}

// inspect looks at a descriptor that a client handed over, and refuses it if it is none of a client's stream.
func inspect(fd int, name string, own net.Addr) (*clientStream, error) {
	s := &clientStream{fd: fd}
	var err error
	if s.socket, err = handable(fd); err == nil && s.socket {
		err = notOurs(fd, own)
	}
	if err == nil {
		s.flags, err = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	}
	if err != nil {
		return nil, refusal(fmt.Sprintf("the client's %s was not taken: %v", name, err))
	}
	return s, nil
}

// watch has the poller wait for the stream. [os.NewFile] looks once whether a descriptor waits by itself.
func (s *clientStream) watch() error {
	err := unix.SetNonblock(s.fd, true)
	s.file = os.NewFile(uintptr(s.fd), "a client's stream")
	if err = errors.Join(err, s.restore()); err == nil {
		err = s.file.SetDeadline(noDeadline) // or the poller does not know it
	}
	if err == nil {
		s.raw, err = s.file.SyscallConn()
	}
	return err
}

// notOurs refuses a socket whose other end is this daemon's: who handed over its own connection would never be seen to end.
func notOurs(fd int, own net.Addr) error {
	peer, err := unix.Getpeername(fd)
	if err != nil {
		return fmt.Errorf("getpeername: %w", err)
	}
	if u, ok := peer.(*unix.SockaddrUnix); ok && u.Name != "" && u.Name == own.String() {
		return errors.New("it is a connection to this daemon")
	}
	return nil
}

// restore gives the stream the flags that it came with.
func (s *clientStream) restore() error {
	_, err := unix.FcntlInt(uintptr(s.fd), unix.F_SETFL, s.flags)
	return err
}

// pull moves what the client has said, up to n bytes, into a pipe. It waits until there is something; nothing is the end.
func (s *clientStream) pull(into *pipe, n int) (moved int64, err error) {
	werr := s.raw.Read(func(uintptr) bool {
		moved, err = again(func() (int64, error) { return unix.Splice(s.fd, nil, into.w, nil, n, unix.SPLICE_F_NONBLOCK) })
		return !errors.Is(err, unix.EAGAIN)
	})
	return moved, errors.Join(werr, inWords("splice", err))
}

// push moves n bytes from a pipe to the client. It waits until there is room.
func (s *clientStream) push(from *pipe, n int) error {
	for n > 0 {
		var moved int64
		var err error
		werr := s.raw.Write(func(uintptr) bool {
			moved, err = again(func() (int64, error) { return unix.Splice(from.r, nil, s.fd, nil, n, unix.SPLICE_F_NONBLOCK) })
			return !errors.Is(err, unix.EAGAIN)
		})
		switch {
		case werr != nil || err != nil:
			return errors.Join(werr, inWords("splice", err))
		case moved == 0:
			return errTaken
		}
		n -= int(moved)
	}
	return nil
}

func inWords(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
