package admin_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
)

// streams are those of a program that a client started: in and out, and the client's ends of them.
type streams struct{ in, out, toIn, fromOut *os.File }

func pipes(t testing.TB) *streams {
	in, toIn, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromOut, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return cleaned(t, &streams{blocking(t, in), blocking(t, out), toIn, fromOut})
}

func sockets(t testing.TB) *streams {
	in, toIn := socketpair(t, unix.SOCK_STREAM)
	out, fromOut := socketpair(t, unix.SOCK_STREAM)
	return cleaned(t, &streams{in, out, toIn, fromOut})
}

func oneSocket(t testing.TB) *streams {
	both, other := socketpair(t, unix.SOCK_STREAM)
	return cleaned(t, &streams{both, again(t, both), other, again(t, other)})
}

// again is another descriptor of the same open file.
func again(t testing.TB, f *os.File) *os.File {
	t.Helper()
	fd, err := unix.Dup(fdOf(t, f))
	if err != nil {
		t.Fatal(err)
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), f.Name())
}

// blocking is a file as a program has it that was started with it: its descriptor waits.
func blocking(t testing.TB, f *os.File) *os.File {
	t.Helper()
	f.Fd() // makes it so
	return f
}

func fdOf(t testing.TB, f *os.File) (fd int) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Control(func(n uintptr) { fd = int(n) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func socketpair(t testing.TB, kind int) (ours, theirs *os.File) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(pair[1], true); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
}

func cleaned(t testing.TB, s *streams) *streams {
	t.Cleanup(func() {
		for _, f := range []*os.File{s.in, s.out, s.toIn, s.fromOut} {
			f.Close()
		}
	})
	return s
}

var kinds = map[string]func(testing.TB) *streams{"pipes": pipes, "sockets": sockets, "one socket for both": oneSocket}

const (
	meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	read = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{` + meta + `,"name":"notes_read","arguments":{"a":%d}}}` + "\n"
)

func handOver(t *testing.T, c *admin.Client, s *streams) admin.Along {
	t.Helper()
	if !admin.CanHandOver(s.in, s.out) {
		t.Fatal("these streams cannot be handed over")
	}
	along, err := c.HandOver(t.Context(), "", "test", "", s.in, s.out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := along.Close(); err != nil {
			t.Error(err)
		}
	})
	return along
}

// follow reads along to the end and returns what it read.
func follow(along admin.Along) (heard, said, passed string, err error) {
	var all [256]strings.Builder
	for {
		e, err := along.Next()
		if err != nil {
			return all[admin.Heard].String(), all[admin.Said].String(), all[admin.Passed].String(), err
		}
		all[e.Kind].Write(e.Text)
	}
}

// descriptors are how many this process has open.
func descriptors(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// closed waits until no more than so many descriptors are open: a daemon closes a connection after it has said so.
func closed(t testing.TB, want int) {
	t.Helper()
	for began := time.Now(); descriptors(t) > want; runtime.Gosched() {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%d descriptors are open, want %d", descriptors(t), want)
		}
	}
}

func TestAClientsStreamsAreServedByTheDaemonItself(t *testing.T) {
	c, _, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	if err := attach(c, "", strings.NewReader(""), io.Discard); err != nil {
		t.Fatal(err)
	}
	for name, make := range kinds {
		t.Run(name, func(t *testing.T) {
			s := make(t)
			before := descriptors(t)
			flags := [2]int{flagsOf(t, s.in), flagsOf(t, s.out)}
			along := handOver(t, c, s)
			var says, hears string
			lines := bufio.NewReader(s.fromOut)
			for n := range 50 {
				says += fmt.Sprintf(read, n, n)
				if _, err := fmt.Fprintf(s.toIn, read, n, n); err != nil {
					t.Fatal(err)
				}
				line, err := lines.ReadString('\n')
				if err != nil || !strings.Contains(line, fmt.Sprintf(`"id":%d,`, n)) {
					t.Fatalf("heard %q, %v", line, err)
				}
				hears += line
			}
			ends(t, s)
			heard, said, passed, err := follow(along)
			if heard != says || said != hears || passed != "" || !errors.Is(err, io.EOF) {
				t.Errorf("read along: %d bytes of %d, %d of %d, %d, %v", len(heard), len(says), len(said), len(hears), len(passed), err)
			}
			left, err := along.TakeBack()
			if err != nil || len(left.Unheard)+len(left.Unsaid)+len(left.Unknown) > 0 {
				t.Errorf("something was left: %+v, %v", left, err)
			}
			if now := [2]int{flagsOf(t, s.in), flagsOf(t, s.out)}; now != flags {
				t.Errorf("the flags are %x, and were %x", now, flags)
			}
			if err := along.Close(); err != nil {
				t.Error(err)
			}
			closed(t, before)
		})
	}
}

// ends is the end of what the client says.
func ends(t testing.TB, s *streams) {
	t.Helper()
	var err error
	if fd := fdOf(t, s.toIn); unix.Shutdown(fd, unix.SHUT_WR) != nil { // a pipe
		err = s.toIn.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func flagsOf(t testing.TB, f *os.File) int {
	t.Helper()
	flags, err := unix.FcntlInt(uintptr(fdOf(t, f)), unix.F_GETFL, 0)
	if err != nil {
		t.Fatal(err)
	}
	return flags
}

// A message of 16 MiB passes in both directions, in pieces.
func TestALongMessagePassesInPieces(t *testing.T) {
	c, _, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	for name, make := range kinds {
		t.Run(name, func(t *testing.T) {
			s := make(t)
			along := handOver(t, c, s)
			read := strings.Replace(fmt.Sprintf(read, 1, 1), `"a":1`, `"a":"`+strings.Repeat("x", 15<<20)+`"`, 1)
			written := async(func() error { _, err := io.WriteString(s.toIn, read); return err })
			answer := async(func() error {
				line, err := bufio.NewReader(s.fromOut).ReadString('\n')
				if len(line) < 100 {
					err = fmt.Errorf("%q, %w", line, err)
				}
				ends(t, s)
				return err
			})
			heard, said, _, err := follow(along)
			if err := errors.Join(<-written, <-answer); err != nil {
				t.Error(err)
			}
			if heard != read || !strings.HasSuffix(said, "\n") || !errors.Is(err, io.EOF) {
				t.Errorf("read along: %d and %d bytes, %v", len(heard), len(said), err)
			}
		})
	}
}

func async(do func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return done
}

// A client that hears no more ends its session, and not the daemon (SIGPIPE).
func TestAClientThatHearsNoMore(t *testing.T) {
	c, _, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	for _, make := range []func(testing.TB) *streams{pipes, sockets} {
		s := make(t)
		along := handOver(t, c, s)
		if err := s.fromOut.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(s.toIn, read, 1, 1); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := follow(along); err == nil || !strings.Contains(err.Error(), "broken pipe") {
			t.Errorf("it ended with %v", err)
		}
	}
}

// When hermesd mcp is gone the session ends, and with it its calls, and the client hears the end of its server's output.
func TestASessionEndsWithWhoReadsAlong(t *testing.T) {
	hang, begun, ended := hanging("notes_hang")
	c, _, _ := start(t, &admin.Options{}, providertest.New("notes", hang))
	s := pipes(t)
	along := handOver(t, c, s)
	if _, err := io.WriteString(s.toIn, strings.Replace(fmt.Sprintf(read, 1, 1), "notes_read", "notes_hang", 1)); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := errors.Join(along.Close(), s.in.Close(), s.out.Close()); err != nil { // as its death does
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if rest, err := io.ReadAll(s.fromOut); err != nil || len(rest) > 0 {
		t.Errorf("the client heard %q, %v", rest, err)
	}
}

// A daemon that is going to stop leaves it to hermesd mcp to pass on what it says.
func TestWhatIsSaidAfterARelease(t *testing.T) {
	c, server, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	for name, make := range kinds {
		t.Run(name, func(t *testing.T) {
			s := make(t)
			flags := flagsOf(t, s.out)
			along := handOver(t, c, s)
			server.Release()
			if _, err := fmt.Fprintf(s.toIn, read, 1, 1); err != nil {
				t.Fatal(err)
			}
			ends(t, s)
			_, said, passed, err := follow(along)
			if said != "" || !strings.Contains(passed, `"id":1,`) || !errors.Is(err, io.EOF) {
				t.Errorf("said %q, passed %q, %v", said, passed, err)
			}
			if now := flagsOf(t, s.out); now != flags {
				t.Errorf("the flags are %x, and were %x", now, flags)
			}
		})
	}
}
