package admin

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// keptSize is how much a pipe holds that both sides keep, in bytes. All pipes of a user together have a soft limit
// (pipe-user-pages-soft, pipe(7)).
const keptSize = 16 << 10

// kept is where bytes are on their way between a client's stream and the daemon, so that each is in one place only whenever
// the daemon dies: two pipes, used in turn, of which the client's `hermesd mcp` has the reading ends, too. One system call
// brings bytes in; then a frame tells what they are; then one takes them out. So the number of frames says which of the
// two holds what no frame told of, and which what was told of and did not go on.
type kept struct {
	pipes [2]pipe
	told  int // frames
}

func (k *kept) now() *pipe { return &k.pipes[k.told%2] }

// pipe is one of the daemon's own. Nobody else has its writing end, so that only the reading one may be made to wait by who
// shares it: nothing is done with that but splice(2) and tee(2), which are told not to.
type pipe struct{ r, w int }

func newPipe() (p pipe, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return p, fmt.Errorf("pipe2: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, keptSize); err != nil {
		closeAll(fds[:])
		return p, fmt.Errorf("fcntl: %w", err)
	}
	return pipe{fds[0], fds[1]}, nil
}

// errTaken is what a client did that emptied a pipe which was kept for it.
var errTaken = errors.New("what was kept for the client has been taken away")

// peek reads what is in a pipe and leaves it there. It needs another, which is empty.
func (p *pipe) peek(through *pipe, into []byte) error {
	n, err := again(func() (int64, error) { return unix.Tee(p.r, through.w, len(into), unix.SPLICE_F_NONBLOCK) })
	if err != nil {
		return fmt.Errorf("tee: %w", err)
	}
	m, err := again(func() (int, error) { return unix.Read(through.r, into) })
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if int(n) != len(into) || m != len(into) {
		return errTaken
	}
	return nil
}

// drop takes what is in a pipe away. null is /dev/null.
func (p *pipe) drop(null, n int) error {
	dropped, err := again(func() (int64, error) { return unix.Splice(p.r, nil, null, nil, n, unix.SPLICE_F_NONBLOCK) })
	if err != nil {
		return fmt.Errorf("splice: %w", err)
	}
	if int(dropped) != n {
		return errTaken
	}
	return nil
}

// left is what is in a pipe whose writer is gone, or writes no more.
func left(r int) ([]byte, error) {
	if err := unix.SetNonblock(r, true); err != nil {
		return nil, err
	}
	var all []byte
	for {
		part := make([]byte, keptSize)
		n, err := again(func() (int, error) { return unix.Read(r, part) })
		switch {
		case n > 0:
			all = append(all, part[:n]...)
		case err == nil, errors.Is(err, unix.EAGAIN):
			return all, nil
		default:
			return all, fmt.Errorf("read: %w", err)
		}
	}
}

// again repeats a system call that a signal interrupted.
func again[N int | int64](call func() (N, error)) (N, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}
