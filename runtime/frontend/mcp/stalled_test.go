package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
)

// client is the end of a client that writes by itself what it says.
type client struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Reader
	ended chan error // of its stream, at the server
}

// attachment is the server's end. As with gRPC, closing it does not end a write that hangs; the end of the stream does.
type attachment struct {
	net.Conn
	closed atomic.Bool
	over   chan struct{}
}

func (a *attachment) Write(p []byte) (int, error) {
	n, err := a.Conn.Write(p)
	if a.closed.Load() {
		<-a.over
	}
	return n, err
}

func (a *attachment) Close() error {
	a.closed.Store(true)
	return a.Conn.Close()
}

func attach(t *testing.T, server *mcp.Server, agent *disclosure.Agent) *client {
	ours, theirs := net.Pipe()
	c := &client{t, ours, bufio.NewReader(ours), make(chan error, 1)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.ended <- server.ServeStream(context.Background(), agent, &attachment{Conn: theirs, over: over})
	}()
	c.ask(`"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}`)
	c.say(`"method":"notifications/initialized"`)
	return c
}

func (c *client) say(members string) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.conn, `{"jsonrpc":"2.0",%s}`+"\n", members); err != nil {
		c.t.Fatal(err)
	}
}

// ask returns the answer.
func (c *client) ask(members string) string {
	c.t.Helper()
	c.say(`"id":1,` + members)
	for {
		if line := c.read(); strings.Contains(line, `"id":1`) {
			return line
		}
	}
}

func (c *client) read() string {
	c.t.Helper()
	line, err := c.lines.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return line
}

// awaits reads on until a line tells of method.
func (c *client) awaits(method string) {
	c.t.Helper()
	for {
		var m struct{ Method string }
		if err := json.Unmarshal([]byte(c.read()), &m); err != nil {
			c.t.Fatal(err)
		}
		if m.Method == method {
			return
		}
	}
}

func TestAStreamWhoseClientHasStoppedReadingHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLibrary("a", "mcp://a/", "file:///x")
		w := frontendtest.New(t, l)
		server, err := mcp.New(&mcp.Options{Desk: w.Desk, Gate: frontend.NewGate(w.Agents, nil)})
		if err != nil {
			t.Fatal(err)
		}
		stopped, busy := attach(t, server, w.Agent("desk")), attach(t, server, w.Agent("desk"))
		for _, c := range []*client{stopped, busy} {
			c.ask(`"method":"resources/subscribe","params":{"uri":"mcp://a/file:///x"}`)
		}
		updated := l.watch["file:///x"]
		begun := time.Now()
		for round := range 3 {
			updated() // as the server's reader does, which has other things to read
			if took := time.Since(begun); took > time.Second {
				t.Fatalf("round %d: what the server says was held up for %v", round, took)
			}
			busy.awaits("notifications/resources/updated")
			l.stock("mcp://a/", "file:///x", fmt.Sprint("file:///", round))
			server.Refresh()
			busy.awaits("notifications/resources/list_changed")
			if answer := busy.ask(`"method":"tools/call","params":{"name":"mcp__a__echo","arguments":{}}`); !strings.Contains(answer, `"result"`) {
				t.Errorf("round %d: a call: %s", round, answer)
			}
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the client that reads waited %v for the other", took)
		}
		if err := <-stopped.ended; err == nil || !strings.Contains(err.Error(), "has read nothing") {
			t.Errorf("the stopped client's stream ended with %v", err)
		}
		if took := time.Since(begun); took < 25*time.Second || took > 35*time.Second {
			t.Errorf("it ended after %v", took)
		}
		if answer := busy.ask(`"method":"ping"`); !strings.Contains(answer, `"result"`) {
			t.Errorf("after it: %s", answer)
		}
		for _, c := range []*client{stopped, busy} {
			c.conn.Close()
		}
		if err := <-busy.ended; err != nil {
			t.Error(err)
		}
		if err := server.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A client that reads a little now and then is slow, not stopped.
func TestAStreamWhoseClientReadsSlowlyLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := providertest.Echo("big_echo")
		w := frontendtest.New(t, providertest.New("big", big))
		server, err := mcp.New(&mcp.Options{Desk: w.Desk, Gate: frontend.NewGate(w.Agents, nil)})
		if err != nil {
			t.Fatal(err)
		}
		c := attach(t, server, w.Agent("desk"))
		c.say(`"id":1,"method":"tools/call","params":{"name":"big_echo","arguments":{"x":"` + strings.Repeat("x", 500<<10) + `"}}`)
		piece := make([]byte, 64<<10)
		begun, read := time.Now(), 0
		for read < 500<<10 {
			time.Sleep(20 * time.Second)
			n, err := io.ReadFull(c.conn, piece)
			if err != nil {
				t.Fatalf("after %d bytes and %v: %v", read, time.Since(begun), err)
			}
			read += n
		}
		c.conn.Close()
		if err := <-c.ended; err != nil {
			t.Error(err)
		}
		if err := server.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// slowAgents takes its time to look an agent up by name, as an assembly of thousands of tools does after it.
type slowAgents struct {
	*frontendtest.Agents
	looking, found chan struct{}
}

func (a *slowAgents) ByName(name string) (*disclosure.Agent, bool) {
	a.looking <- struct{}{}
	<-a.found
	return a.Agents.ByName(name)
}

func TestARefreshHoldsUpNoRequest(t *testing.T) {
	w := frontendtest.New(t, providertest.New("notes", providertest.Echo("notes_read")))
	slow := &slowAgents{w.Agents, make(chan struct{}), make(chan struct{})}
	w.Desk.Agents = slow
	e := serveWorld(t, &mcp.Options{}, w)
	call(t, e.connect(t, newer, nil), "notes_read", nil)
	refreshed := make(chan struct{})
	go func() {
		defer close(refreshed)
		e.server.Refresh()
	}()
	<-slow.looking
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
		if resp := e.post(t, list, map[string]string{"Authorization": "Bearer " + frontendtest.OtherToken}); resp.StatusCode != 200 {
			t.Errorf("HTTP %d", resp.StatusCode)
		}
	}()
	select {
	case <-answered:
	case <-time.After(10 * time.Second):
		t.Error("a request waited for the refresh")
	}
	close(slow.found)
	<-refreshed
	<-answered
}
