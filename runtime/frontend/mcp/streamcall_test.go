package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// attached is the client of a stream that has a session; its end is checked.
func attached(t *testing.T, e *endpoint) *client {
	c := attach(t, e.server, e.Agent("desk"))
	t.Cleanup(func() {
		c.conn.Close()
		if err := <-c.ended; err != nil {
			t.Error("the stream ended with", err)
		}
	})
	return c
}

// calls says a tools/call. more are further members of its params.
func (c *client) calls(id, name, more string) {
	c.t.Helper()
	c.say(fmt.Sprintf(`"id":%s,"method":"tools/call","params":{"name":%q%s}`, id, name, more))
}

// reads returns the messages up to the answer to a request.
func (c *client) reads(id string) (messages []map[string]any) {
	c.t.Helper()
	for {
		line := c.read()
		var m map[string]any
		var exact struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal([]byte(line), &m) != nil || json.Unmarshal([]byte(line), &exact) != nil {
			c.t.Fatalf("not a message: %s", line)
		}
		messages = append(messages, m)
		if string(exact.ID) == id && exact.Method == "" {
			return messages
		}
	}
}

// hanging is a tool that runs until it is cancelled or released. It says when it begins and how it ended.
func hanging(name string) (tl providertest.Tool, begun chan struct{}, release chan struct{}, ended chan error) {
	begun, release, ended = make(chan struct{}, 2000), make(chan struct{}), make(chan error, 2000)
	return answering(name, func(ctx context.Context, _ *provider.Request) (*tool.Result, error) {
		begun <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		ended <- ctx.Err()
		return tool.TextResult("done"), nil
	}), begun, release, ended
}

// A plain call is served without the SDK. With a parameter that no protocol knows it is served by the SDK, and the client
// cannot tell the difference.
func TestAPlainCallOnAStreamIsAnsweredAsTheSDKAnswersIt(t *testing.T) {
	e := serve(t, providertest.New("t", everyAnswer()...))
	meta := map[string]string{
		older: `"x":1%s`,
		newer: `"io.modelcontextprotocol/protocolVersion":"` + newer + `","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/logLevel":"info"%s`,
	}
	for version, format := range meta {
		c := attached(t, e)
		for _, name := range []string{"t_echo", "t_fail", "t_error", "t_structured", "t_image", "t_meta", "t_garbage", "t_none", "t_needs", "t_tells", "t_ask", "tool_search"} {
			for what, token := range map[string]string{"": "", ", with a token": `,"progressToken":"p"`, ", with a number": `,"progressToken":7`} {
				t.Run(version+" "+name+what, func(t *testing.T) {
					answer := func(more string) (messages []map[string]any) {
						c.calls("7", name, `,"arguments":{"queries":["echo"]},"_meta":{`+fmt.Sprintf(format, token)+`}`+more)
						messages = c.reads("7")
						if result, ok := messages[len(messages)-1]["result"].(map[string]any); ok && result["requestState"] != nil {
							result["requestState"] = "some"
						}
						return messages
					}
					got, want := answer(""), answer(`,"unknown":1`)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("SDK - ours +:\n%s", diff)
					}
				})
			}
		}
	}
}

func TestACallOnAStreamIsAnsweredUnderTheIDThatWasSent(t *testing.T) {
	c := attached(t, serve(t, providertest.New("t", core(providertest.Echo("t_echo")))))
	for _, id := range []string{`1`, `0`, `-3`, `9007199254740993`, `18446744073709551616`, `1.5`, `1e3`, `""`, `"a\u0041\n"`, `"ü"`} {
		c.calls(id, "t_echo", "")
		c.reads(id)
	}
}

func TestACallOnAStreamIsCancelled(t *testing.T) {
	hang, begun, _, ended := hanging("t_hang")
	for what, more := range map[string]string{"a plain call": "", "the SDK's": `,"unknown":1`} {
		for _, id := range []string{`7`, `"7"`, `9007199254740993`, `"a\u0041"`} {
			t.Run(what+" "+id, func(t *testing.T) {
				c := attached(t, serve(t, providertest.New("t", hang)))
				c.calls(id, "t_hang", more)
				<-begun
				c.say(`"method":"notifications/cancelled","params":{"requestId":"other"}`)
				c.say(`"method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"enough"}`)
				if err := <-ended; err != context.Canceled {
					t.Errorf("the tool's context: %v", err)
				}
				c.say(`"id":"after","method":"ping"`)
				if messages := c.reads(`"after"`); more == "" && len(messages) > 1 {
					t.Errorf("a call that was cancelled is answered: %v", messages)
				}
			})
		}
	}
}

func TestAnIDThatIsInUseIsRefusedAndNotAnsweredTwice(t *testing.T) {
	hang, begun, release, _ := hanging("t_hang")
	c := attached(t, serve(t, providertest.New("t", hang)))
	for name, id := range map[string]string{"a number": `5`, "a text": `"five"`, "a large number": `9007199254740993`} {
		c.calls(id, "t_hang", "")
		<-begun
		again := []string{`"id":` + id + `,"method":"tools/call","params":{"name":"t_hang"}`, `"id":` + id + `,"method":"ping"`}
		for _, request := range again {
			c.say(request)
			if m := c.reads("null")[0]; m["error"] == nil || !strings.Contains(fmt.Sprint(m["error"]), strings.Trim(id, `"`)) {
				t.Errorf("%s: %v", name, m)
			}
		}
		release <- struct{}{}
		if messages := c.reads(id); len(messages) != 1 || messages[0]["result"] == nil {
			t.Errorf("%s: %v", name, messages)
		}
		c.say(again[1]) // it is free again
		c.reads(id)
	}
	if len(begun) != 0 {
		t.Error("a call of an id in use was run")
	}
}

func TestTheLevelOfASessionHoldsForItsCalls(t *testing.T) {
	c := attached(t, serve(t, providertest.New("t", everyAnswer()...)))
	for level, want := range map[string][]string{"info": {"info", "error"}, "debug": {"debug", "info", "error"}, "error": {"error"}, "emergency": nil} {
		c.say(`"id":"l","method":"logging/setLevel","params":{"level":"` + level + `"}`)
		c.reads(`"l"`)
		c.calls("1", "t_tells", "")
		var got []string
		for _, m := range c.reads("1") {
			if m["method"] == "notifications/message" {
				got = append(got, m["params"].(map[string]any)["level"].(string))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: lines of %v", level, got)
		}
	}
}

func TestPingsAndChangesGoThroughWhileACallRuns(t *testing.T) {
	hang, begun, release, _ := hanging("t_hang")
	l := newLibrary("a", "mcp://a/", "file:///x")
	e := serve(t, providertest.New("t", hang), l)
	c := attached(t, e)
	c.calls("1", "t_hang", "")
	<-begun
	c.say(`"id":2,"method":"ping"`)
	c.reads("2")
	l.stock("mcp://a/", "file:///x", "file:///y")
	e.server.Refresh()
	c.awaits("notifications/resources/list_changed")
	close(release)
	c.reads("1")
}

func TestACallBeforeInitializeIsRefused(t *testing.T) {
	p := providertest.New("t", core(providertest.Echo("t_echo")))
	conn := stream(t, serve(t, p))
	go io.WriteString(conn, `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"t_echo"}}`+"\n") //nolint:errcheck // the answer tells
	var m struct {
		ID    json.RawMessage
		Error struct{ Message string }
	}
	if readLine(t, bufio.NewReader(conn), &m); string(m.ID) != "9007199254740993" || !strings.Contains(m.Error.Message, "initialization") || len(p.Calls()) > 0 {
		t.Errorf("got %+v", m)
	}
}

func TestAPlainCallIsAnsweredAfterTheLastMessage(t *testing.T) {
	hang, begun, release, ended := hanging("t_hang")
	e := serve(t, providertest.New("t", hang))
	in := plainCall("1", "t_hang", "") // which needs no initialize
	out, writer := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- e.server.ServeStream(context.Background(), e.Agent("desk"), halves{strings.NewReader(in), writer})
	}()
	<-begun
	close(release)
	answer, err := io.ReadAll(out)
	if err != nil || !strings.Contains(string(answer), `"done"`) || <-ended != nil {
		t.Errorf("got %s, %v", answer, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// canBeAsked is what a call of protocol 2026-07-28 says about a client that shows forms.
const canBeAsked = `,"arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newer + `","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`

func TestACallThatAskedOutlivesItsStream(t *testing.T) {
	e := serve(t, providertest.New("forms", providertest.Asking("forms_ask", provider.Question{Message: "sure?"})))
	first, second := attach(t, e.server, e.Agent("desk")), attached(t, e)
	first.calls("1", "forms_ask", canBeAsked)
	asked := first.reads("1")[0]["result"].(map[string]any)
	state, _ := asked["requestState"].(string)
	first.conn.Close()
	if err := <-first.ended; err != nil || asked["resultType"] != "input_required" { // which waits for nobody's answer
		t.Errorf("got %v, and the stream ended with %v", asked, err)
	}
	second.calls("2", "forms_ask", canBeAsked+answered(state))
	if got := second.reads("2")[0]["result"].(map[string]any); got["resultType"] != "complete" || !strings.Contains(fmt.Sprint(got["content"]), "accept") {
		t.Errorf("got %v", got)
	}
}

func TestAPlainCallEndsWithItsStream(t *testing.T) {
	type ending struct {
		end   func(*mcp.Server, *client)
		after time.Duration
		more  string
	}
	goes := func(_ *mcp.Server, c *client) { c.conn.Close() }
	closes := func(s *mcp.Server, c *client) { s.Close(c.t.Context()) }
	for name, c := range map[string]ending{
		"the client goes":                             {goes, 10 * time.Second, ""}, // it may have said everything, and wait for answers
		"the front end closes":                        {closes, 0, ""},
		"a client goes that a question could outlast": {goes, 10 * time.Second, canBeAsked},
		"the front end closes before such a client":   {closes, 0, canBeAsked},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang, begun, _, ended := hanging("t_hang")
				w := frontendtest.New(t, providertest.New("t", hang))
				server, err := mcp.New(&mcp.Options{Desk: w.Desk, Gate: frontend.NewGate(w.Agents, nil)})
				if err != nil {
					t.Fatal(err)
				}
				client := attach(t, server, w.Agent("desk"))
				client.calls("1", "t_hang", c.more)
				<-begun
				at := time.Now()
				c.end(server, client)
				if err := <-ended; err != context.Canceled || time.Since(at) != c.after {
					t.Errorf("the tool's context: %v, after %v", err, time.Since(at))
				}
				if err := <-client.ended; err != nil {
					t.Error(err)
				}
				if err := server.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestOneStreamHasAThousandOpenRequestsAtMost(t *testing.T) {
	const most = 1000
	hang, begun, release, _ := hanging("t_hang")
	c := attached(t, serve(t, providertest.New("t", hang)))
	for i := range most {
		c.calls(fmt.Sprint(i+1), "t_hang", "")
		<-begun
	}
	c.calls("9007199254740993", "t_hang", "")
	if m := c.reads("9007199254740993"); !strings.Contains(fmt.Sprint(m[0]["error"]), "wait for answers") {
		t.Errorf("got %v", m)
	}
	close(release)
	for range most {
		c.read()
	}
	c.calls("1", "t_hang", "")
	c.reads("1")
}

// A client that says much and reads nothing makes the daemon keep no more than one stream's open requests.
func TestAClientThatReadsNothingIsHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int64
		w := frontendtest.New(t, providertest.New("t", answering("t_echo", func(context.Context, *provider.Request) (*tool.Result, error) {
			ran.Add(1)
			return tool.TextResult("x"), nil
		})))
		server, err := mcp.New(&mcp.Options{Desk: w.Desk, Gate: frontend.NewGate(w.Agents, nil)})
		if err != nil {
			t.Fatal(err)
		}
		c := attach(t, server, w.Agent("desk"))
		begun, said := time.Now(), 0
		for ; said < 5000; said++ {
			if _, err := fmt.Fprintf(c.conn, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t_echo"}}`+"\n", said); err != nil {
				break
			}
		}
		if err := <-c.ended; err == nil || !strings.Contains(err.Error(), "has read nothing") {
			t.Errorf("the stream ended with %v", err)
		}
		if took := time.Since(begun); said > 1010 || ran.Load() > 1000 || took > 35*time.Second {
			t.Errorf("%d calls were taken and %d run in %v", said, ran.Load(), took)
		}
		if err := server.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
