package admin_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
)

// knock opens a connection to a client's socket, and says something.
func knock(t *testing.T, socket, said string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, said); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func frame(kind byte, size uint32, said string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, size)) + said
}

// Who opens the socket and says nothing, or half of something, holds up nobody: neither others nor the end.
func TestNobodyWaitsForWhoSaysNothing(t *testing.T) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	for name, said := range map[string]string{
		"nothing": "", "a letter": "o", "half an opening": frame('o', 13, `{"agent`), "half of gRPC's preface": preface[:10], "gRPC's preface": preface,
	} {
		t.Run(name, func(t *testing.T) {
			c, server, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
			for range 200 {
				knock(t, c.Socket(), said)
			}
			if err := attach(c, "", strings.NewReader(""), io.Discard); err != nil { // so those before it were taken, too
				t.Error(err)
			}
			begun := time.Now()
			if err := server.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took > 3*time.Second {
				t.Errorf("the end took %v", took)
			}
		})
	}
}

func TestAClientThatComesWhileTheDaemonStopsIsToldSo(t *testing.T) {
	c, server, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	conn := knock(t, c.Socket(), frame('o', 13, `{"agent`))
	if err := attach(c, "", strings.NewReader(""), io.Discard); err != nil {
		t.Error(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if said, err := io.ReadAll(conn); err != nil || !strings.Contains(string(said), `"code":14,"message":"hermesd is stopping`) {
		t.Errorf("it was told %s (%v)", said, err)
	}
}

// The frames that no client of hermesd sends end its connection, with a reason, at once.
func TestFramesThatAreNoneAreRefused(t *testing.T) {
	const opening = "o\x00\x00\x00\x02{}"
	c, _, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	for name, tt := range map[string]struct{ said, reason string }{
		"an opening of 4 GiB":               {frame('o', 1<<32-1, ""), "a frame of 4294967295 bytes"},
		"an opening that needs much room":   {frame('o', 1<<20, ""), "a frame of 1048576 bytes"},
		"data of 4 GiB":                     {opening + frame('d', 1<<32-1, ""), "a frame of 4294967295 bytes"},
		"an end that needs much room":       {opening + frame('e', 1<<20, ""), "a frame of 1048576 bytes"},
		"no opening":                        {frame('d', 3, "abc"), "this is neither gRPC nor the begin of an MCP stream"},
		"a second opening":                  {opening + opening, "different versions"},
		"a kind that this daemon knows not": {opening + frame('x', 0, ""), "different versions"},
		"another protocol":                  {"GET / HTTP/1.1\r\n\r\n", "different versions"},
		"an agent with a very long name":    {frame('o', 50_012, `{"agent":"`+strings.Repeat("\x7f", 50_000)+`"}`), `there is no agent`},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := io.ReadAll(knock(t, c.Socket(), tt.said))
			if err != nil || !strings.Contains(string(answer), tt.reason) || answer[0] != 'e' || len(answer) > 64<<10 {
				t.Errorf("it was told %.200q (%d bytes, %v)", answer, len(answer), err)
			}
		})
	}
	if err := attach(c, "", strings.NewReader(""), io.Discard); err != nil {
		t.Error("after all that:", err)
	}
}

// What a client says after it said that it has said everything is not read.
func TestNothingFollowsTheEnd(t *testing.T) {
	c, _, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	data := frame('d', uint32(len(ping)), ping)
	answer, err := io.ReadAll(knock(t, c.Socket(), frame('o', 2, "{}")+data+frame('e', 2, "{}")+data))
	if err != nil || strings.Count(string(answer), `"id":1`) != 1 || !strings.HasSuffix(string(answer), frame('e', 2, "{}")) {
		t.Errorf("it was told %q (%v)", answer, err)
	}
}

// Where daemon and command are of different versions, both say so, and what to do.
func TestOtherVersionsAreToldWhatToDo(t *testing.T) {
	t.Run("a daemon that speaks gRPC only", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "admin.sock")
		l, err := admin.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		old, served := grpc.NewServer(), make(chan error, 1)
		go func() { served <- old.Serve(l) }()
		defer func() {
			old.Stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
		}()
		c, err := admin.Dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := attach(c, "", strings.NewReader("{}\n"), io.Discard); !errors.Is(err, admin.ErrRefused) || !strings.Contains(err.Error(), "different versions; restart") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a command that speaks gRPC only", func(t *testing.T) {
		c, _, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
		conn, err := grpc.NewClient("passthrough:///"+c.Socket(), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", path)
			}))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/hermes.admin.v1.Admin/Attach")
		if err == nil {
			err = stream.RecvMsg(nil)
		}
		if s := status.Convert(err); s.Code() != codes.InvalidArgument || !strings.Contains(s.Message(), "different versions; restart") {
			t.Errorf("got %v", err)
		}
	})
}
