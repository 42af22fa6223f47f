package admin_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
)

// What a client may do that wants the daemon harm, with what it hands over.

// sendWith says something on a connection of its own, with descriptors.
func sendWith(t testing.TB, socket, said string, fds ...int) *net.UnixConn {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(10 * time.Second))
	}
	if err == nil && said != "" {
		_, _, err = conn.WriteMsgUnix([]byte(said), unix.UnixRights(fds...), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestOnlyPipesAndStreamSocketsAreTaken(t *testing.T) {
	const opening = "s\x00\x00\x00\x02{}"
	c, _, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(path string, flags int) int {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	tcp, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(tcp) })
	s := pipes(t)
	in, out := fdOf(t, s.in), fdOf(t, s.out)
	datagrams, other := socketpair(t, unix.SOCK_DGRAM)
	cleaned(t, &streams{datagrams, other, datagrams, other})
	for name, tt := range map[string]struct {
		said   string
		fds    []int
		reason string
	}{
		"a file":                         {opening, []int{in, open(filepath.Join(t.TempDir()), 0)}, "standard output was not taken: it is neither"},
		"a device":                       {opening, []int{open("/dev/null", 0), out}, "standard input was not taken: it is neither"},
		"a socket of TCP":                {opening, []int{in, tcp}, "it is neither"},
		"a socket of datagrams":          {opening, []int{in, fdOf(t, datagrams)}, "it is neither"},
		"what was opened for neither":    {opening, []int{open(fifo, unix.O_PATH), out}, "standard input was not taken"},
		"one only":                       {opening, []int{in}, "1 descriptors came with an opening to which 2 belong"},
		"none":                           {opening, nil, "0 descriptors came with an opening to which 2 belong"},
		"three":                          {opening, []int{in, out, out}, "3 descriptors came with an opening to which 2 belong"},
		"more than there is room for":    {opening, []int{in, out, in, out, in, out, in, out}, "4 descriptors came with"},
		"with an opening of the other":   {"o\x00\x00\x00\x02{}", []int{in, out}, "2 descriptors came with an opening to which 0 belong"},
		"with what is no JSON":           {"s\x00\x00\x00\x02{{", []int{in, out}, "invalid character"},
		"for an agent that there is not": {frame('s', 18, `{"agent":"nobody"}`), []int{in, out}, "there is no agent"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := sendWith(t, c.Socket(), "")
			before := descriptors(t)
			defer closed(t, before)
			if _, _, err := conn.WriteMsgUnix([]byte(tt.said), unix.UnixRights(tt.fds...), nil); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(conn)
			if err != nil || !strings.Contains(string(answer), tt.reason) || answer[0] != 'e' {
				t.Errorf("it was told %.200q (%v)", answer, err)
			}
		})
	}
	t.Run("with messages", func(t *testing.T) {
		conn := sendWith(t, c.Socket(), "o\x00\x00\x00\x02{}")
		ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
		if _, err := io.WriteString(conn, frame('d', uint32(len(ping)), ping)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := conn.WriteMsgUnix([]byte(frame('d', 1, "\n")), unix.UnixRights(in, out), nil); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(conn); !strings.Contains(string(answer), "descriptors came where none belong") {
			t.Errorf("it was told %.200q (%v)", answer, err)
		}
	})
	t.Run("with gRPC", func(t *testing.T) {
		conn := sendWith(t, c.Socket(), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", in, out)
		if answer, err := io.ReadAll(conn); len(answer) > 0 && err == nil {
			t.Errorf("it was answered %.200q", answer)
		}
	})
	t.Run("a connection to the daemon", func(t *testing.T) {
		conn := sendWith(t, c.Socket(), "")
		raw, err := conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var own int
		if err := raw.Control(func(fd uintptr) { own = int(fd) }); err != nil {
			t.Fatal(err)
		}
		if _, _, err := conn.WriteMsgUnix([]byte(opening), unix.UnixRights(own, own), nil); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), "it is a connection to this daemon") {
			t.Errorf("it was told %.200q (%v)", answer, err)
		}
	})
	if err := attach(c, "", strings.NewReader(""), io.Discard); err != nil {
		t.Error("after all that:", err)
	}
}

// Each byte of an opening may bring descriptors, and an opening that does not end has many bytes.
func TestDescriptorsDoNotPileUpBeforeAnOpeningEnds(t *testing.T) {
	c, _, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	s := pipes(t)
	conn := sendWith(t, c.Socket(), "")
	before := descriptors(t)
	said := []byte(frame('s', 64<<10, ""))
	for range 1000 {
		if _, _, err := conn.WriteMsgUnix(said, unix.UnixRights(fdOf(t, s.in), fdOf(t, s.out)), nil); err != nil {
			break // it hears no more
		}
		said = []byte(" ")
	}
	if answer, err := io.ReadAll(conn); !strings.Contains(string(answer), "descriptors came where none belong") {
		t.Errorf("it was told %.200q (%v)", answer, err)
	}
	closed(t, before)
}

// Clients that hand over their streams leave the daemon descriptors for everything else.
func TestStreamsTakeHalfOfTheDescriptors(t *testing.T) {
	c, _, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	lower := limit
	lower.Cur = 200
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lower); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}()
	for n := range 200 / 2 / 14 {
		s := pipes(t)
		handOver(t, c, s)
		if _, err := fmt.Fprintf(s.toIn, read, n, n); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(s.fromOut).ReadString('\n'); err != nil || !strings.Contains(line, `"result"`) {
			t.Fatalf("client %d heard %q, %v", n, line, err)
		}
	}
	_, _, _, err := follow(handOver(t, c, pipes(t)))
	if !errors.Is(err, admin.ErrNotTaken) || !strings.Contains(err.Error(), "too many clients") {
		t.Errorf("one more ended with %v", err)
	}
	if err := attach(c, "", strings.NewReader(""), io.Discard); err != nil {
		t.Error("one that is relayed:", err)
	}
}

// Who hands over one pipe twice has nowhere to be answered, and a session that ends.
func TestAPipeTwiceIsASessionThatEnds(t *testing.T) {
	c, _, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	s := pipes(t)
	along := handOver(t, c, &streams{in: s.in, out: s.in})
	if _, err := fmt.Fprintf(s.toIn, read, 1, 1); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := follow(along); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
}

// stuck is a session whose client asks and reads no answers, until no more questions are taken.
func stuck(t *testing.T, s *streams) {
	t.Helper()
	if err := s.toIn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 4<<10)
	for {
		if _, err := fmt.Fprintf(s.toIn, "%s\n", text); errors.Is(err, os.ErrDeadlineExceeded) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// Neither a client that reads nothing, nor one that makes the daemon's writes wait, nor a hermesd mcp that does not read
// along, holds up the end of the daemon.
func TestWhoReadsNothingDoesNotHoldUpTheEnd(t *testing.T) {
	for name, make := range kinds {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, waits: %t", name, waits), func(t *testing.T) {
				t.Parallel()
				c, server, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
				s := make(t)
				along := handOver(t, c, s)
				if waits {
					if _, err := fmt.Fprintf(s.toIn, read, 1, 1); err != nil {
						t.Fatal(err)
					}
					if _, err := bufio.NewReader(s.fromOut).ReadString('\n'); err != nil { // so the daemon has the streams
						t.Fatal(err)
					}
					for _, f := range []*os.File{s.in, s.out} {
						if err := unix.SetNonblock(fdOf(t, f), false); err != nil {
							t.Fatal(err)
						}
					}
				}
				stuck(t, s)
				begun := time.Now()
				if err := server.Close(); err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took > 8*time.Second {
					t.Errorf("the end took %v", took)
				}
				if _, _, _, err := follow(along); err == nil {
					t.Error("no end")
				}
			})
		}
	}
}

// Who takes away what is kept for it, and makes the pipes small, harms its own session only.
func TestWhoTakesAwayWhatIsKeptHarmsItself(t *testing.T) {
	c, server, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	s := pipes(t)
	conn := sendWith(t, c.Socket(), "s\x00\x00\x00\x02{}", fdOf(t, s.in), fdOf(t, s.out))
	room := make([]byte, unix.CmsgSpace(16))
	n, oobn, _, _, err := conn.ReadMsgUnix(make([]byte, 5), room)
	if err != nil || n != 5 {
		t.Fatal(n, err)
	}
	messages, err := unix.ParseSocketControlMessage(room[:oobn])
	if err != nil {
		t.Fatal(err)
	}
	kept, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(kept) != 4 {
		t.Fatal(kept, err)
	}
	drained := async(func() error { // the answers, and what the daemon tells
		_, err := io.Copy(io.Discard, conn)
		return err
	})
	stop := make(chan struct{})
	stolen := async(func() error {
		for b := make([]byte, 100); ; {
			select {
			case <-stop:
				return nil
			default:
			}
			for _, fd := range kept {
				unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, 4096)
				unix.Read(fd, b)
			}
		}
	})
	go io.Copy(io.Discard, s.fromOut)
	if err := s.toIn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for n := 0; err == nil; n++ {
		_, err = fmt.Fprintf(s.toIn, read, n, n)
	}
	if err := attach(c, "", strings.NewReader(""), io.Discard); err != nil {
		t.Error("another client:", err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	close(stop)
	if err := errors.Join(<-stolen, <-drained); err != nil {
		t.Error(err)
	}
	for _, fd := range kept {
		unix.Close(fd)
	}
}

// Whatever comes with whatever descriptors, they are closed again.
func FuzzHandOver(f *testing.F) {
	for n, seed := range []string{"s\x00\x00\x00\x02{}", "o\x00\x00\x00\x02{}", "s\x00\x00\x00\x01{}", "s\xff\xff\xff\xff{}", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "s\x00\x00\x00\x02{}d\x00\x00\x00\x01\n", "x"} {
		f.Add([]byte(seed), byte(2), byte(n))
		f.Add([]byte(seed), byte(n), byte(n))
	}
	f.Fuzz(func(t *testing.T, said []byte, count, which byte) {
		if len(said) == 0 {
			return
		}
		c, server, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
		s := pipes(t)
		before := descriptors(t)
		all := []int{fdOf(t, s.in), fdOf(t, s.out), fdOf(t, s.toIn), 0}
		var fds []int
		for n := range count % 16 {
			fds = append(fds, all[(n+which)%4])
		}
		conn := sendWith(t, c.Socket(), string(said), fds...)
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, conn)
		conn.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		closed(t, before)
	})
}
