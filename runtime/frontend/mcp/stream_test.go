package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// stream serves one client and returns its end. The stream's end is checked.
func stream(t *testing.T, e *endpoint) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- e.server.ServeStream(context.Background(), e.Agent("desk"), theirs) }()
	t.Cleanup(func() {
		ours.Close()
		if err := <-ended; err != nil {
			t.Error("the stream ended with", err)
		}
	})
	return ours
}

func TestStreamServesBothGenerations(t *testing.T) {
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			p := providertest.New("notes", providertest.Echo("notes_read"), providertest.Asking("notes_ask", provider.Question{Message: "sure?"}))
			e := serve(t, p)
			conn := stream(t, e)
			client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
				ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					return &sdk.ElicitResult{Action: "decline"}, nil
				},
			})
			s, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: conn, Writer: conn}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			if got := text(t, call(t, s, "notes_read", map[string]any{"x": 1})); got != `{"x":1}` {
				t.Errorf("got %s", got)
			}
			if got := text(t, call(t, s, "notes_ask", nil)); got != "decline " {
				t.Errorf("asked: %q", got)
			}
			if session := p.Calls()[0].Call.Session; !strings.HasPrefix(session, "desk/") || session != p.Calls()[1].Call.Session {
				t.Errorf("session %q", session)
			}
		})
	}
}

func TestStreamAnswersGarbageAndGoesOn(t *testing.T) {
	tests := map[string]struct {
		line string
		code int
		id   any
	}{
		"truncated JSON":             {`{"jsonrpc":"2.0","id":1,"meth`, -32700, nil},
		"no JSON":                    {"\x00\x01garbage", -32700, nil},
		"bytes that are no text":     {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notes_read","arguments":{"x":"` + "a\xff" + `"}}}`, -32700, nil},
		"two values on one line":     {`{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, -32700, nil},
		"JSON that is no message":    {`"hello"`, -32600, nil},
		"another protocol":           {`{"id":1,"method":"ping"}`, -32600, 1.0},
		"an id that is none":         {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600, nil},
		"an empty batch":             {`[]`, -32600, nil},
		"a batch of something else":  {`[1]`, -32600, nil},
		"something said twice":       {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`, -32600, 1.0},
		"an answer said twice":       {`{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`, -32600, nil},
		"an id said twice":           {`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, -32600, nil},
		"twice in _meta of a call":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"x":1,"x":2}}}`, -32600, 1.0},
		"a line longer than 16 MiB":  {`{"jsonrpc":"2.0","id":1,"method":"ping","x":"` + strings.Repeat("x", 17<<20) + `"}`, -32600, nil},
		"nesting without an end":     {strings.Repeat("[", 100_000), -32700, nil},
		"nesting that is too deep":   {`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, -32600, 1.0},
		"a message that is a number": {`42`, -32600, nil},
	}
	e := serve(t, providertest.New("notes", providertest.Echo("notes_read")))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			conn := stream(t, e)
			answers := bufio.NewReader(conn)
			go func() {
				if _, err := io.WriteString(conn, tt.line+"\n\n"+`{"jsonrpc":"2.0","id":"after","method":"ping"}`+"\n"); err != nil {
					t.Error(err)
				}
			}()
			var complaint struct {
				ID    any `json:"id"`
				Error struct{ Code int }
			}
			readLine(t, answers, &complaint)
			if complaint.ID != tt.id || complaint.Error.Code != tt.code {
				t.Errorf("got %+v", complaint)
			}
			var pong struct{ ID string }
			if readLine(t, answers, &pong); pong.ID != "after" {
				t.Errorf("after it: %+v", pong)
			}
		})
	}
}

func TestAStreamAnswersUnderTheIDThatWasSent(t *testing.T) {
	conn := stream(t, serve(t, providertest.New("notes", providertest.Echo("notes_read"))))
	answers := bufio.NewReader(conn)
	for _, id := range []string{`9007199254740993`, `1.5`, `7`, `"7"`} {
		go func() {
			if _, err := io.WriteString(conn, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`+"\n"); err != nil {
				t.Error(err)
			}
		}()
		var pong struct{ ID json.RawMessage }
		if readLine(t, answers, &pong); string(pong.ID) != id {
			t.Errorf("%s is answered as %s", id, pong.ID)
		}
	}
}

func readLine(t *testing.T, r *bufio.Reader, into any) {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(line), into); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
}

// halves is a stream whose client has closed its sending half.
type halves struct {
	io.Reader
	io.WriteCloser
}

func TestEverythingThatWasAskedIsAnsweredAfterTheLastMessage(t *testing.T) {
	release := make(chan struct{})
	e := serve(t, providertest.New("slow", providertest.Tool{
		Definition: tool.Definition{Name: "slow_one"},
		Handler: func(context.Context, *provider.Request) (*tool.Result, error) {
			<-release
			return tool.TextResult("late"), nil
		},
	}))
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"printf","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
[{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow_one"}},{"jsonrpc":"2.0","id":3,"method":"ping"}]`
	out, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- e.server.ServeStream(context.Background(), e.Agent("desk"), halves{strings.NewReader(in), writer})
	}()
	got := map[string]bool{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var m struct {
			ID     any
			Result json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		if got[fmt.Sprint(m.ID)] = true; fmt.Sprint(m.ID) == "3" {
			close(release)
		}
		if fmt.Sprint(m.ID) == "2" && !strings.Contains(string(m.Result), "late") {
			t.Errorf("got %s", m.Result)
		}
	}
	if !got["1"] || !got["2"] || !got["3"] {
		t.Errorf("answered: %v", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
