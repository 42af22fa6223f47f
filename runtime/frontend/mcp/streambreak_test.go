package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// What a provider writes between its values ends no line, and so says nothing in the daemon's name.
func TestAResultIsOneLine(t *testing.T) {
	const forged = `{"jsonrpc":"2.0","id":99,"result":{}}`
	pretty := answering("t_pretty", func(_ context.Context, req *provider.Request) (*tool.Result, error) {
		req.Host.Progress(tool.Progress{Done: 1})
		return &tool.Result{
			Content:    []tool.Content{tool.Content("{\"type\":\"text\",\r\n\"text\":\"a\\nb\"}")},
			Structured: []byte("{\"a\":\n" + forged + "\n,\"b\":\r" + forged + "}"),
		}, nil
	})
	const want = `"result":{"content":[{"type":"text","text":"a\nb"}],"structuredContent":{"a":` + forged + `,"b":` + forged + `}`
	e := serve(t, providertest.New("t", pretty))
	t.Run("on a stream", func(t *testing.T) {
		c := attached(t, e)
		for _, meta := range []string{"", `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newer + `","io.modelcontextprotocol/clientCapabilities":{}}`} {
			c.calls("1", "t_pretty", meta)
			if line := c.read(); !strings.Contains(line, want) || strings.ContainsRune(line, '\r') {
				t.Errorf("got %q", line)
			}
		}
	})
	t.Run("over HTTP", func(t *testing.T) {
		for _, token := range []string{"", `,"progressToken":1`} { // one document, and a stream of events
			body := strings.Replace(plainCall("1", "t_pretty", ""), `"_meta":{`, `"_meta":{"x":1`+token+",", 1)
			messages := readMessages(t, e.post(t, body, plainHeader("t_pretty")))
			if got := string(messages[len(messages)-1]); !strings.Contains(got, want) {
				t.Errorf("got %q", got)
			}
		}
	})
}

func TestASubscriptionIsToldUnderTheIDThatWasSent(t *testing.T) {
	l := newLibrary("a", "mcp://a/", "file:///x")
	e := serve(t, l)
	for i, id := range []string{"1.5", "9007199254740993", `"s"`, "7"} {
		conn := stream(t, e)
		answers := bufio.NewReader(conn)
		go fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"%s","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}},"notifications":{"resourcesListChanged":true}}}`+"\n", id, newer) //nolint:errcheck // the answer tells
		for _, said := range []string{"acknowledged", "resources/list_changed"} {
			if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, said) || !strings.Contains(line, `subscriptionId":`+id+`}`) {
				t.Errorf("%s: %s (%v)", id, line, err)
			}
			if said == "acknowledged" {
				l.stock("mcp://a/", "file:///x", fmt.Sprint("file:///", i))
				e.server.Refresh()
			}
		}
	}
}

// A client that has said everything is not kept for the sake of what it listens to.
func TestASubscriptionDoesNotOutliveItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := frontendtest.New(t)
		server, err := mcp.New(&mcp.Options{Desk: w.Desk, Gate: frontend.NewGate(w.Agents, nil)})
		if err != nil {
			t.Fatal(err)
		}
		out, writer := io.Pipe()
		go io.Copy(io.Discard, out) //nolint:errcheck // until it is closed
		in := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newer + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}},"notifications":{"toolsListChanged":true}}}` + "\n"
		begun := time.Now()
		if err := server.ServeStream(t.Context(), w.Agent("desk"), struct {
			io.Reader
			io.WriteCloser
		}{strings.NewReader(in), writer}); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("it ended after %v", took)
		}
		if err := server.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A client that begins a session speaks what the answer to initialize says, whatever it asked for.
func TestASessionIsOfTheVersionThatWasAnswered(t *testing.T) {
	e := serve(t, providertest.New("t", answering("t_ask", func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
		answer, err := req.Host.Ask(ctx, provider.Question{Message: "sure?"})
		return tool.TextResult(answer.Action), err
	})))
	for asked, answered := range map[string]string{"2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", newer: "2025-11-25", "2099-01-01": "2025-11-25", "1999-01-01": "2025-11-25"} {
		c := &client{t: t, conn: stream(t, e)}
		c.lines = bufio.NewReader(c.conn)
		if got := c.ask(`"method":"initialize"`); !strings.Contains(got, `"error"`) {
			t.Errorf("without params: %s", got)
		}
		if got := c.ask(`"method":"initialize","params":{"protocolVersion":"` + asked + `","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}`); !strings.Contains(got, `"protocolVersion":"`+answered+`"`) {
			t.Errorf("%s: %s", asked, got)
		}
		for _, more := range []string{"", `,"unknown":1`} {
			c.calls(`"a"`, "t_ask", more)
			var question struct{ ID json.RawMessage }
			if line := c.read(); !strings.Contains(line, "elicitation/create") || json.Unmarshal([]byte(line), &question) != nil {
				t.Fatalf("%s: %s", asked, line)
			}
			c.say(`"id":` + string(question.ID) + `,"result":{"action":"decline"}`)
			if line := c.read(); !strings.Contains(line, `"text":"decline"`) || strings.Contains(line, "resultType") {
				t.Errorf("%s: %s", asked, line)
			}
		}
	}
}

// A stop waits for calls to end, and for their answers to be written.
func TestACallThatEndsWhileTheDaemonStopsIsAnswered(t *testing.T) {
	for range 100 {
		hang, begun, release, _ := hanging("t_hang")
		e := serve(t, providertest.New("t", hang))
		c := attached(t, e)
		c.calls("1", "t_hang", "")
		<-begun
		close(release)
		stopped := make(chan error, 1)
		go func() {
			e.Desk.Drain(t.Context())
			stopped <- e.server.Close(t.Context())
		}()
		if line, err := c.lines.ReadString('\n'); err != nil || !strings.Contains(line, `"done"`) {
			t.Fatalf("got %q (%v)", line, err)
		}
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
	}
}

func TestALastLineNeedsNoEnd(t *testing.T) {
	long := strings.Repeat("x", 17<<20)
	for in, want := range map[string][]error{"": {io.EOF}, "a": {nil, io.EOF}, "a\r": {nil, io.EOF}, "a\n": {nil, io.EOF}, long: {mcp.ErrLineTooLong, io.EOF}, long + "\n": {mcp.ErrLineTooLong, io.EOF}, long + "\na": {mcp.ErrLineTooLong, nil, io.EOF}} {
		r := bufio.NewReader(strings.NewReader(in))
		for i, wanted := range want {
			if line, err := mcp.ReadLine(r); !errors.Is(err, wanted) || err == nil && string(line) != "a" {
				t.Errorf("%.5q: line %d is %q (%v)", in, i, line, err)
			}
		}
	}
}

func TestABatchIsBounded(t *testing.T) {
	conn := stream(t, serve(t, providertest.New("t", core(providertest.Echo("t_echo")))))
	go io.WriteString(conn, "["+strings.Repeat("1,", 1000)+"1]\n") //nolint:errcheck // the answer tells
	var m struct{ Error struct{ Message string } }
	if readLine(t, bufio.NewReader(conn), &m); !strings.Contains(m.Error.Message, "a batch of 1001 messages; send 1000 at most") {
		t.Errorf("got %+v", m)
	}
}

// One agent's streams leave room for those of others.
func TestAnAgentsStreamsAreBounded(t *testing.T) {
	e := serveWith(t, &mcp.Options{MaxSessions: 4})
	first, _ := attached(t, e), attached(t, e)
	open := func() error {
		ours, theirs := net.Pipe()
		ours.Close()
		return e.server.ServeStream(context.Background(), e.Agent("desk"), theirs)
	}
	if err := open(); tool.CodeOf(err) != tool.NotGranted || !strings.Contains(err.Error(), "too many open sessions") {
		t.Errorf("a third is told %v", err)
	}
	first.conn.Close()
	if err := <-first.ended; err != nil {
		t.Error(err)
	}
	first.ended <- nil
	if err := open(); err != nil {
		t.Errorf("after another has ended it is told %v", err)
	}
}
