package admin

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// maxDescriptors is how many descriptors either side sends at once: a client its two streams, the daemon the four pipes that
// both keep.
const maxDescriptors = 4

// incoming reads a connection, and the descriptors that come along with the first bytes. The kernel puts them into this
// process as soon as room is given for them, so what is not used is to be closed.
type incoming struct {
	conn        *net.UnixConn
	descriptors []int
	cut         bool // some had no room, or this process may have no more
	sealed      bool
}

// Read implements [io.Reader]. Descriptors that come when nothing expects them end the connection; the kernel has closed
// them then.
func (c *incoming) Read(p []byte) (int, error) {
	var room []byte
	if !c.sealed {
		room = make([]byte, unix.CmsgSpace(4*maxDescriptors))
	}
	n, oobn, flags, _, err := c.conn.ReadMsgUnix(p, room)
	if oobn > 0 {
		more, perr := descriptors(room[:oobn])
		c.descriptors = append(c.descriptors, more...)
		err = errors.Join(err, perr)
	}
	c.cut = c.cut || flags&unix.MSG_CTRUNC != 0
	if len(c.descriptors) > maxDescriptors { // each byte may bring more
		closeAll(c.descriptors)
		c.descriptors, c.sealed = nil, true
		return 0, errDescriptors
	}
	switch {
	case flags&unix.MSG_CTRUNC != 0 && c.sealed:
		return 0, errDescriptors
	case errors.Is(err, io.EOF):
		return 0, io.EOF
	}
	return max(n, 0), err
}

// seal lets no descriptors in any more and returns those that came. cut says that they are not all.
func (c *incoming) seal() (came []int, cut bool) {
	came, c.descriptors, c.sealed = c.descriptors, nil, true
	return came, c.cut
}

// descriptors are those of a control message. Even with an error they are this process's.
func descriptors(control []byte) (all []int, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	for i := range messages {
		rights, rerr := unix.ParseUnixRights(&messages[i])
		all, err = append(all, rights...), errors.Join(err, rerr)
	}
	return all, err
}

func closeAll(descriptors []int) {
	for _, fd := range descriptors {
		unix.Close(fd) // which fails only for what is closed
	}
}

// handable says why a descriptor cannot be one of the streams that a daemon takes from a client, or nil: it must be a pipe
// or a unix stream socket, which never make a daemon wait where it does not want to. What was opened without the right to
// read and write (O_PATH) would lend the daemon's own.
func handable(fd int) (socket bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, fmt.Errorf("fstat: %w", err)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return false, fmt.Errorf("fcntl: %w", err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		if flags&unix.O_PATH == 0 {
			return false, nil
		}
	case unix.S_IFSOCK:
		domain, err1 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		kind, err2 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
		if err := errors.Join(err1, err2); err != nil {
			return false, fmt.Errorf("getsockopt: %w", err)
		}
		if domain == unix.AF_UNIX && kind == unix.SOCK_STREAM {
			return true, nil
		}
	}
	return false, errors.New("it is neither a pipe nor a unix stream socket")
}

// CanHandOver reports whether a daemon may be given a client's two streams instead of their messages: on Linux, where both
// are pipes or unix stream sockets.
func CanHandOver(in, out *os.File) bool {
	return !slices.ContainsFunc([]*os.File{in, out}, func(f *os.File) bool {
		ok := false
		err := control(f, func(fd int) error {
			_, err := handable(fd)
			ok = err == nil
			return nil
		})
		return err != nil || !ok
	})
}

// control calls do with a file's descriptor, and leaves its mode alone, other than [os.File.Fd].
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = do(int(fd)) })
	return errors.Join(err, failed)
}
