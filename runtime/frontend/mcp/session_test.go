package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestGate(t *testing.T) {
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`
	tests := map[string]struct {
		header map[string]string
		status int
	}{
		"a foreign Host header is DNS rebinding":          {map[string]string{"Host": "evil.example.com"}, 403},
		"a foreign Origin is another web page":            {map[string]string{"Origin": "http://evil.example.com"}, 403},
		"an opaque Origin is refused":                     {map[string]string{"Origin": "null"}, 403},
		"localhost is the server":                         {map[string]string{"Host": "localhost:7433", "Origin": "http://localhost:7433"}, 200},
		"a token that nobody has":                         {map[string]string{"Authorization": "Bearer nobody"}, 401},
		"another scheme":                                  {map[string]string{"Authorization": "Basic xyz"}, 401},
		"no token, and a proxy in between":                {map[string]string{"Authorization": "", "X-Forwarded-For": "192.0.2.1"}, 401},
		"no token, but a program of the daemon's own uid": {map[string]string{"Authorization": ""}, 200},
	}
	e := serve(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			resp := e.post(t, initialize, tt.header)
			if resp.StatusCode != tt.status {
				t.Errorf("HTTP %d, want %d", resp.StatusCode, tt.status)
			}
			if asks := resp.Header.Get("WWW-Authenticate") != ""; asks != (tt.status == 401) {
				t.Errorf("WWW-Authenticate: %q", resp.Header.Get("WWW-Authenticate"))
			}
		})
	}
}

func TestSessions(t *testing.T) {
	t.Run("a session is its agent's alone", func(t *testing.T) {
		e := serve(t, providertest.New("notes", providertest.Echo("notes_read")))
		id := e.connect(t, older, nil).ID()
		list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
		if resp := e.post(t, list, map[string]string{"Mcp-Session-Id": id}); resp.StatusCode != 200 {
			t.Errorf("its own agent: HTTP %d", resp.StatusCode)
		}
		if resp := e.post(t, list, map[string]string{"Mcp-Session-Id": id, "Authorization": "Bearer " + frontendtest.OtherToken}); resp.StatusCode != 404 {
			t.Errorf("another agent: HTTP %d", resp.StatusCode)
		}
	})
	t.Run("their number is bounded, and a closed one makes room", func(t *testing.T) {
		e := serveWith(t, &mcp.Options{MaxSessions: 1})
		first := e.connect(t, older, nil)
		initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`
		if resp := e.post(t, initialize, nil); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
			t.Errorf("HTTP %d", resp.StatusCode)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if resp := e.post(t, initialize, nil); resp.StatusCode != 200 {
			t.Errorf("after one was closed: HTTP %d", resp.StatusCode)
		}
	})
	t.Run("one agent leaves room for others", func(t *testing.T) {
		e := serveWith(t, &mcp.Options{MaxSessions: 3})
		initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`
		for i, want := range []int{200, 200, 503} {
			if resp := e.post(t, initialize, nil); resp.StatusCode != want {
				t.Errorf("session %d: HTTP %d, want %d", i+1, resp.StatusCode, want)
			}
		}
		if resp := e.post(t, initialize, map[string]string{"Authorization": "Bearer " + frontendtest.OtherToken}); resp.StatusCode != 200 {
			t.Errorf("another agent: HTTP %d", resp.StatusCode)
		}
	})
	t.Run("calls carry the session, scoped to the agent", func(t *testing.T) {
		p := providertest.New("notes", providertest.Echo("notes_read"))
		e := serve(t, p)
		s := e.connect(t, older, nil)
		call(t, s, "notes_read", nil)
		stateless := e.connect(t, newer, nil)
		call(t, stateless, "notes_read", nil)
		call(t, stateless, "notes_read", nil)
		_, err := stateless.CallTool(t.Context(), &sdk.CallToolParams{Meta: sdk.Meta{frontend.SessionMeta: "mine"}, Name: "notes_read"})
		if err != nil {
			t.Fatal(err)
		}
		calls := p.Calls()
		if got := calls[0].Call.Session; got != "desk/"+s.ID() {
			t.Errorf("MCP session: %q", got)
		}
		if a, b := calls[1].Call.Session, calls[2].Call.Session; a != b || !strings.HasPrefix(a, "desk/") || a == calls[0].Call.Session {
			t.Errorf("one session for an agent and a client: %q, %q", a, b)
		}
		if got := calls[3].Call.Session; got != "desk/mine" {
			t.Errorf("a session that the client named: %q", got)
		}
	})
}

// MCP 2025-11-25, transports: an unsupported version header is 400, and a session goes on at the version it negotiated.
func TestTheVersionOfASession(t *testing.T) {
	e := serve(t, providertest.New("notes", providertest.Echo("notes_read")))
	id := e.connect(t, older, nil).ID()
	for version, want := range map[string]int{older: 200, "2025-06-18": 200, "": 200, "2025-01-01": 400, "latest": 400} {
		resp := e.post(t, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": id, "Mcp-Protocol-Version": version})
		if resp.StatusCode != want {
			t.Errorf("%q: HTTP %d, want %d", version, resp.StatusCode, want)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil { // the next request may have the same id once this one is answered
			t.Error(err)
		}
	}
}

func TestListChanges(t *testing.T) {
	p := providertest.New("notes", core(providertest.Echo("notes_read")))
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			p.SetTools(core(providertest.Echo("notes_read")))
			e := serve(t, p)
			changed := make(chan struct{}, 10)
			s := e.connect(t, version, &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} }})
			before := names(t, s)
			p.SetStatus(provider.Backoff, "killed")
			e.Catalog.Refresh()
			e.server.Refresh()
			p.SetStatus(provider.Ready, "")
			p.SetTools(core(providertest.Echo("notes_read")), core(providertest.Echo("notes_write")))
			e.Catalog.Refresh()
			e.server.Refresh()
			<-changed
			if diff := cmp.Diff(append([]string{"notes_read", "notes_write"}, before[1:]...), names(t, s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(changed) > 0 {
				t.Error("told more than once")
			}
		})
	}
}

func TestAListIsItsAgentsAlone(t *testing.T) {
	e := serve(t, providertest.New("notes", providertest.Echo("notes_read")))
	got := fmt.Sprintf("%s", readMessages(t, e.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil)))
	if !strings.Contains(got, `"cacheScope":"private"`) {
		t.Errorf("caches may share it: %.200s", got)
	}
}

func TestAnAgentThatIsNoMoreLosesItsSessions(t *testing.T) {
	e := serve(t, providertest.New("notes", providertest.Echo("notes_read")))
	s := e.connect(t, older, nil)
	e.Agents.Remove("desk")
	e.server.Refresh()
	if _, err := s.ListTools(t.Context(), nil); err == nil {
		t.Error("the session goes on")
	}
}

func TestCloseEndsCallsAndStreams(t *testing.T) {
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			started := make(chan struct{})
			e := serve(t, providertest.New("jobs", providertest.Tool{
				Definition: tool.Definition{Name: "jobs_hang"},
				Handler: func(ctx context.Context, _ *provider.Request) (*tool.Result, error) {
					close(started)
					<-ctx.Done()
					return nil, ctx.Err()
				},
			}))
			s := e.connect(t, version, nil)
			done := make(chan struct{})
			go func() {
				defer close(done)
				r, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: "jobs_hang"})
				if err == nil && !r.IsError {
					t.Error("a result")
				}
			}()
			<-started
			begin := time.Now()
			if err := e.server.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("took %s", took)
			}
			<-done
		})
	}
}

// A client whose connection broke takes up the stream where it was, at the version that its session negotiated, even if
// its requests name an older one.
func TestABrokenStreamIsTakenUp(t *testing.T) {
	release := make(chan struct{})
	e := serve(t, providertest.New("jobs", providertest.Tool{
		Definition: tool.Definition{Name: "jobs_run"},
		Handler: func(context.Context, *provider.Request) (*tool.Result, error) {
			<-release
			return tool.TextResult("late"), nil
		},
	}))
	initialized := e.post(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`, nil)
	readMessages(t, initialized)
	header := map[string]string{"Mcp-Session-Id": initialized.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-03-26"}
	broken := e.post(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"jobs_run"}}`, header)
	prime := bufio.NewReader(broken.Body)
	event := map[string]string{}
	for {
		line, err := prime.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			break
		}
		event[key] = strings.TrimSpace(value)
	}
	if event["id"] == "" || event["retry"] == "" || event["data"] != "" {
		t.Fatalf("the first event: %v", event)
	}
	if err := broken.Body.Close(); err != nil {
		t.Fatal(err)
	}
	close(release)
	header["Last-Event-ID"] = event["id"]
	for {
		again := e.request(t, http.MethodGet, "", header)
		if again.StatusCode == http.StatusConflict { // the server has not noticed the break yet
			continue
		}
		if got := fmt.Sprintf("%s", readMessages(t, again)); !strings.Contains(got, "late") {
			t.Errorf("HTTP %d: %s", again.StatusCode, got)
		}
		return
	}
}

// A client of the newer protocol repeats annotated arguments in headers, and both must agree (SEP-2243). An annotation that
// is wrong costs the annotation, not the daemon.
func TestHeaderAnnotations(t *testing.T) {
	annotated := func(name, property string) providertest.Tool {
		e := core(providertest.Echo(name))
		e.InputSchema = json.RawMessage(`{"type":"object","properties":{"region":` + property + `}}`)
		return e
	}
	e := serve(t, providertest.New("cloud",
		annotated("cloud_list", `{"type":"string","x-mcp-header":"Region"}`),
		annotated("cloud_bad", `{"type":"array","x-mcp-header":"Region"}`),
	))
	request := func(name, header string) *http.Response {
		return e.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"`+newer+`","io.modelcontextprotocol/clientCapabilities":{}},"name":"`+name+`","arguments":{"region":"eu"}}}`, map[string]string{
			"Mcp-Protocol-Version": newer, "Mcp-Method": "tools/call", "Mcp-Name": name, "Mcp-Param-Region": header,
		})
	}
	if resp := request("cloud_list", "eu"); resp.StatusCode != 200 {
		t.Errorf("header and body agree: HTTP %d", resp.StatusCode)
	}
	if resp := request("cloud_list", "us"); resp.StatusCode != 400 {
		t.Errorf("they differ: HTTP %d", resp.StatusCode)
	}
	if resp := request("cloud_bad", "us"); resp.StatusCode != 200 {
		t.Errorf("a wrong annotation: HTTP %d", resp.StatusCode)
	}
}
