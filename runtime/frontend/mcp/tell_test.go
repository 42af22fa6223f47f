package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// pipes is a listener whose connections hold nothing that is not read.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7433} }

// send makes a request on a connection of its own, and reads the answer's head.
func (p *pipes) send(t *testing.T, method, session, body string) (*http.Response, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	p.accept <- theirs
	head := method + " /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + frontendtest.Token +
		"\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
	if session != "" {
		head += "Mcp-Session-Id: " + session + "\r\nMcp-Protocol-Version: " + older + "\r\n"
	}
	if _, err := fmt.Fprintf(ours, "%sContent-Length: %d\r\n\r\n%s", head, len(body), body); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(ours), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	return resp, ours
}

// open begins a session and opens its stream.
func (p *pipes) open(t *testing.T) (stream io.Reader, conn net.Conn) {
	t.Helper()
	post := func(session, body string) string {
		resp, conn := p.send(t, http.MethodPost, session, body)
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode >= 300 {
			t.Fatalf("HTTP %d, %v", resp.StatusCode, err)
		}
		conn.Close()
		return resp.Header.Get("Mcp-Session-Id")
	}
	session := post("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+older+`","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	post(session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	resp, conn := p.send(t, http.MethodGet, session, "")
	return resp.Body, conn
}

func TestASessionWhoseClientHasStoppedReadingHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLibrary("a", "mcp://a/", "file:///x")
		w := frontendtest.New(t, l)
		server, err := mcp.New(&mcp.Options{Desk: w.Desk, Gate: frontend.NewGate(w.Agents, nil)})
		if err != nil {
			t.Fatal(err)
		}
		hs, p := frontend.NewHTTPServer(server.Handler(), nil), &pipes{make(chan net.Conn), make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- hs.Serve(p) }()
		_, stopped := p.open(t)
		stream, busy := p.open(t)
		lines := bufio.NewScanner(stream)
		begun := time.Now()
		for round := range 3 {
			l.stock("mcp://a/", "file:///x", fmt.Sprint("file:///", round))
			server.Refresh()
			for lines.Scan() && !strings.Contains(lines.Text(), "notifications/resources/list_changed") {
			}
		}
		if took := time.Since(begun); took > time.Second || lines.Err() != nil {
			t.Errorf("the session whose client reads was told after %v: %v", took, lines.Err())
		}
		stopped.Close()
		busy.Close()
		if err := server.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := hs.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
}

// What belongs to an agent that is no more ends, and holds up no other, even if it does not end when it is told to.
func TestAnAgentThatIsNoMoreHoldsUpNobody(t *testing.T) {
	ways := map[string]func(*testing.T, *endpoint) *sdk.ClientSession{
		"a stream": func(t *testing.T, e *endpoint) *sdk.ClientSession {
			conn := stream(t, e)
			s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).
				Connect(t.Context(), &sdk.IOTransport{Reader: conn, Writer: conn}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
	for name, version := range generations {
		ways[name] = func(t *testing.T, e *endpoint) *sdk.ClientSession { return e.connect(t, version, nil) }
	}
	for name, connect := range ways {
		t.Run(name, func(t *testing.T) {
			started, cancelled, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
			e := serve(t, providertest.New("jobs", providertest.Tool{
				Definition: tool.Definition{Name: "jobs_deaf"},
				Handler: func(ctx context.Context, _ *provider.Request) (*tool.Result, error) {
					close(started)
					<-ctx.Done()
					close(cancelled)
					<-release
					return nil, ctx.Err()
				},
			}))
			s := connect(t, e)
			let := sync.OnceFunc(func() { close(release) })
			t.Cleanup(let) // before the server is closed, which waits for the call
			called := make(chan struct{})
			go func() {
				defer close(called)
				if r, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: "jobs_deaf"}); err == nil && !r.IsError {
					t.Error("a result")
				}
			}()
			<-started
			e.Agents.Remove("desk")
			for range 2 {
				refreshed := make(chan struct{})
				go func() {
					defer close(refreshed)
					e.server.Refresh()
				}()
				select {
				case <-refreshed:
				case <-time.After(10 * time.Second):
					t.Fatal("a refresh waits for a call of an agent that is no more")
				}
			}
			select {
			case <-cancelled:
			case <-time.After(10 * time.Second):
				t.Error("the call was not cancelled")
			}
			let()
			<-called
		})
	}
}

func TestSubscriptionsAreDividedBetweenAgents(t *testing.T) {
	const most = 5000 // half of all places
	l := newLibrary("a", "mcp://a/")
	w := frontendtest.New(t, l)
	server, err := mcp.New(&mcp.Options{Desk: w.Desk, Gate: frontend.NewGate(w.Agents, nil)})
	if err != nil {
		t.Fatal(err)
	}
	greedy, other := attach(t, server, w.Agent("desk")), attach(t, server, w.Agent("other"))
	ask := func(c *client, method, uri string) string {
		return c.ask(fmt.Sprintf(`"method":"resources/%s","params":{"uri":"mcp://a/%s"}`, method, uri))
	}
	for i := range most {
		if answer := ask(greedy, "subscribe", fmt.Sprint("file:///", i)); !strings.Contains(answer, `"result"`) {
			t.Fatalf("subscription %d: %s", i, answer)
		}
	}
	if answer := ask(greedy, "subscribe", "file:///more"); !strings.Contains(answer, "too many resources") {
		t.Errorf("one too many: %s", answer)
	}
	if answer := ask(other, "subscribe", "file:///1"); !strings.Contains(answer, `"result"`) {
		t.Errorf("another agent: %s", answer)
	}
	ask(greedy, "unsubscribe", "file:///7")
	ask(greedy, "unsubscribe", "file:///never")
	if answer := ask(greedy, "subscribe", "file:///more"); !strings.Contains(answer, `"result"`) {
		t.Errorf("in the place of one that was given back: %s", answer)
	}
	greedy.conn.Close()
	if err := <-greedy.ended; err != nil {
		t.Error(err)
	}
	next := attach(t, server, w.Agent("desk"))
	for i := range 10 {
		if answer := ask(next, "subscribe", fmt.Sprint("file:///", i)); !strings.Contains(answer, `"result"`) {
			t.Errorf("after the session that had them all: %s", answer)
		}
	}
	if answer := ask(next, "subscribe", strings.Repeat("x", 10_000)); !strings.Contains(answer, "are the limit") {
		t.Errorf("a huge address: %s", answer)
	}
	for _, c := range []*client{next, other} {
		c.conn.Close()
		if err := <-c.ended; err != nil {
			t.Error(err)
		}
	}
	if err := server.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if len(l.watch) != 0 {
		t.Errorf("%d are watched after the end", len(l.watch))
	}
}
