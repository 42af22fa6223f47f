package admin

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// An MCP stream has a connection of its own on the admin socket, beside those of gRPC: between a client and a daemon on one
// machine, gRPC's windows and goroutines took more time than everything that the daemon does with a small call.
//
// Both sides send frames: a kind, the length of what follows as four bytes, and that. The client's first is an opening; what
// both say then is in frames of data. A frame of the end says that nothing follows: of the client's messages, or of the
// session. Where there was none, the connection broke.
const (
	frameOpening = 'o' // an opening as JSON. HTTP/2 begins with another letter.
	frameData    = 'd'
	frameEnd     = 'e' // an ending as JSON
	// The others are of a client that hands its streams over (handedover_linux.go).
	frameHandOver = 's' // an opening with the client's two streams beside it, as descriptors
	frameKept     = 'k' // nothing, with the pipes that both sides keep
	frameHeard    = 'h' // what the daemon read from the client; nothing: its end
	frameSaid     = 'w' // what the daemon is writing to the client

	frameHead = 5        // bytes
	maxFrame  = 1 << 20  // bytes of what follows the head
	maxSaid   = 64 << 10 // of them in a frame of JSON, for which there is room at once
)

// opening says whose session begins.
type opening struct {
	Agent  string `json:"agent,omitempty"`  // "": the local agent
	Client string `json:"client,omitempty"` // the program, for logs
	Via    string `json:"via,omitempty"`    // the ids of the daemons that started it, separated by commas

	descriptors int // that belong to it
}

// ending is how a session ended, in gRPC's words, which the rest of the socket uses.
type ending struct {
	Code    codes.Code `json:"code,omitempty"`
	Message string     `json:"message,omitempty"`
}

// framed is one side of a connection that carries frames, as the bytes of those with data. One goroutine may read and others
// write.
type framed struct {
	conn  *net.UnixConn
	r     *bufio.Reader // of conn
	left  int           // of the frame that is being read
	ended error         // why nothing more can be read

	writing sync.Mutex
	broken  bool // part of a frame may be written
}

// Read implements [io.Reader]. It ends with [io.EOF] where the other side ended well, else with the reason.
func (f *framed) Read(p []byte) (int, error) {
	for f.left == 0 && f.ended == nil {
		f.ended = f.next()
	}
	if f.ended != nil {
		return 0, f.ended
	}
	n, err := f.r.Read(p[:min(len(p), f.left)])
	f.left -= n
	if err != nil {
		f.ended = broke(err)
	}
	return n, f.ended
}

// next reads on to data.
func (f *framed) next() error {
	kind, size, err := f.head()
	switch {
	case err != nil:
		return err
	case kind == frameData:
		f.left = size
		return nil
	case kind == frameEnd:
		return f.end(size)
	}
	return errVersions
}

// end reads how the session ended: [io.EOF] where it ended well.
func (f *framed) end(size int) error {
	var e ending
	if err := f.body(size, &e); err != nil {
		return err
	}
	if e.Code == codes.OK {
		return io.EOF
	}
	return fromStatus(status.Error(e.Code, e.Message))
}

// head reads the head of a frame. Of what is none (a daemon of gRPC alone greets with HTTP/2's settings), the kind is all that
// counts.
func (f *framed) head() (kind byte, size int, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return 0, 0, broke(err)
	}
	kind = head[0]
	switch kind {
	case frameOpening, frameData, frameEnd, frameHandOver, frameKept, frameHeard, frameSaid:
	default:
		return 0, 0, errVersions
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame || kind != frameData && n > maxSaid {
		return 0, 0, fmt.Errorf("%w: a frame of %d bytes", ErrBroken, n)
	}
	return kind, int(n), nil
}

// body reads a frame of JSON.
func (f *framed) body(size int, into any) error {
	raw := make([]byte, size)
	if _, err := io.ReadFull(f.r, raw); err != nil {
		return broke(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return nil
}

// broke is the end of a connection that the other side did not announce. It is no [io.EOF].
func broke(err error) error { return fmt.Errorf("%w: %s", ErrBroken, err.Error()) }

// Write implements [io.Writer].
func (f *framed) Write(p []byte) (int, error) {
	for written := 0; ; {
		piece := p[written:min(len(p), written+maxFrame)]
		if err := f.frame(frameData, piece); err != nil {
			return written, err
		}
		if written += len(piece); written == len(p) {
			return written, nil
		}
	}
}

// tell writes a frame of JSON.
func (f *framed) tell(kind byte, what any) error {
	raw, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return f.frame(kind, raw)
}

func (f *framed) frame(kind byte, p []byte) error {
	b := make([]byte, frameHead, frameHead+len(p))
	b[0] = kind
	binary.BigEndian.PutUint32(b[1:], uint32(len(p)))
	f.writing.Lock()
	defer f.writing.Unlock()
	if f.broken {
		return net.ErrClosed
	}
	_, err := f.conn.Write(append(b, p...))
	f.broken = err != nil
	return err
}

// errDescriptors answers descriptors that no frame announced.
const errDescriptors = refusal("descriptors came where none belong")

// close closes the connection, whatever is read or written. It may be called more than once.
func (f *framed) close() error {
	if err := f.conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
