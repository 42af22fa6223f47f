//lint:file-ignore SA1019 logging and sampling are deprecated from 2026-07-28, and what the clients before it have

package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The two generations of the protocol.
var generations = map[string]string{
	"with sessions (2025-11-25)":    "2025-11-25",
	"without sessions (2026-07-28)": "2026-07-28",
}

const older, newer = "2025-11-25", "2026-07-28"

type endpoint struct {
	*frontendtest.World
	server *mcp.Server
	url    string
}

func serve(t *testing.T, providers ...provider.Provider) *endpoint {
	t.Helper()
	return serveWith(t, &mcp.Options{}, providers...)
}

func serveWith(t *testing.T, opts *mcp.Options, providers ...provider.Provider) *endpoint {
	t.Helper()
	w := frontendtest.New(t, providers...)
	opts.Desk, opts.Gate = w.Desk, frontend.NewGate(w.Agents, nil)
	server, err := mcp.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(mcp.Path, server.Handler())
	hs := httptest.NewUnstartedServer(mux)
	hs.Config = frontend.NewHTTPServer(mux, nil)
	hs.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			t.Error("close:", err)
		}
		hs.Close()
	})
	return &endpoint{w, server, hs.URL + mcp.Path}
}

// bearer sends a token and nothing else.
type bearer struct {
	token string
	base  *http.Transport
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.base.RoundTrip(r)
}

func (e *endpoint) connect(t *testing.T, version string, opts *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	base := &http.Transport{}
	transport := &sdk.StreamableClientTransport{Endpoint: e.url, HTTPClient: &http.Client{Transport: &bearer{frontendtest.Token, base}}}
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opts)
	session, err := client.Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Log("closing the client:", err)
		}
		base.CloseIdleConnections()
	})
	return session
}

func core(t providertest.Tool) providertest.Tool {
	t.Coldness = tool.Core
	return t
}

func names(t *testing.T, s *sdk.ClientSession) []string {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func text(t *testing.T, r *sdk.CallToolResult) string {
	t.Helper()
	if len(r.Content) == 0 {
		t.Fatal("no content")
	}
	c, ok := r.Content[0].(*sdk.TextContent)
	if !ok {
		t.Fatalf("content is %T", r.Content[0])
	}
	return c.Text
}

func call(t *testing.T, s *sdk.ClientSession, name string, args any) *sdk.CallToolResult {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMainJob(t *testing.T) {
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			e := serve(t, providertest.New("notes", core(providertest.Echo("notes_read")), providertest.Echo("notes_archive")))
			s := e.connect(t, version, nil)

			if got := s.InitializeResult(); got != nil && got.ProtocolVersion != version {
				t.Errorf("negotiated %s", got.ProtocolVersion)
			}
			want := []string{"notes_read", "tool_search", "tool_describe", "tool_call"}
			if diff := cmp.Diff(want, names(t, s)); diff != "" {
				t.Errorf("the list (-want +got):\n%s", diff)
			}
			if got := text(t, call(t, s, "tool_search", map[string]any{"queries": []string{"archive notes"}})); !strings.Contains(got, `"notes_archive"`) {
				t.Errorf("the search did not find the deferred tool: %s", got)
			}
			if got := text(t, call(t, s, "tool_describe", map[string]any{"names": []string{"notes_archive"}})); !strings.Contains(got, "parameters") {
				t.Errorf("describe: %s", got)
			}
			bridged := call(t, s, "tool_call", map[string]any{"name": "notes_archive", "arguments": map[string]any{"x": 1}})
			direct := call(t, s, "notes_archive", map[string]any{"x": 1})
			if a, b := text(t, bridged), text(t, direct); a != `{"x":1}` || a != b {
				t.Errorf("bridged %s, direct %s", a, b)
			}
		})
	}
}

func TestAnUnknownToolIsAnAnswerThatHelps(t *testing.T) {
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			e := serve(t, providertest.New("notes", providertest.Echo("notes_archive")))
			r := call(t, e.connect(t, version, nil), "notes_archiv", nil)
			var got struct{ Error, Code string }
			if err := json.Unmarshal([]byte(text(t, r)), &got); err != nil {
				t.Fatal(err)
			}
			if !r.IsError || got.Code != "unknown_tool" || !strings.Contains(got.Error, "notes_archive") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A block of a kind that the SDK does not know would be refused by it; keys that it does not know would be dropped.
func TestContentBlocksPassByteForByte(t *testing.T) {
	blocks := []tool.Content{
		tool.Content(`{"type":"text","text":"a < b & c > d","annotations":{"priority":0.5,"x":1},"z":[1,2]}`),
		tool.Content(`{"type":"novelty","big":12345678901234567890,"_meta":{"k":"v"}}`),
		tool.Image("image/png", []byte{1, 2, 3}),
	}
	p := providertest.New("media", providertest.Tool{
		Definition: tool.Definition{Name: "media_show"},
		Handler: func(context.Context, *provider.Request) (*tool.Result, error) {
			return &tool.Result{Content: blocks, Structured: json.RawMessage(`{"b":1,"a":12345678901234567890}`), Meta: json.RawMessage(`{"own":true}`)}, nil
		},
	})
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			e := serve(t, p)
			result := rawCall(t, e, version, "media_show")
			var got struct {
				Content    []json.RawMessage          `json:"content"`
				Structured json.RawMessage            `json:"structuredContent"`
				Meta       map[string]json.RawMessage `json:"_meta"`
				ResultType string                     `json:"resultType"`
			}
			if err := json.Unmarshal(result, &got); err != nil {
				t.Fatal(err)
			}
			for i, b := range blocks {
				if string(got.Content[i]) != string(b) {
					t.Errorf("block %d:\nsent %s\ngot  %s", i, b, got.Content[i])
				}
			}
			if string(got.Structured) != `{"b":1,"a":12345678901234567890}` || string(got.Meta["own"]) != "true" {
				t.Errorf("structured %s, meta %s", got.Structured, got.Meta)
			}
			if wantType := map[string]string{newer: "complete"}[version]; got.ResultType != wantType {
				t.Errorf("resultType %q, want %q", got.ResultType, wantType)
			}
		})
	}
}

func TestAnswerThatIsNoJSONIsAnErrorAndNotSilence(t *testing.T) {
	p := providertest.New("bad", providertest.Tool{
		Definition: tool.Definition{Name: "bad_json"},
		Handler: func(context.Context, *provider.Request) (*tool.Result, error) {
			return &tool.Result{Content: []tool.Content{tool.Content(`{"type":`)}}, nil
		},
	})
	e := serve(t, p)
	r := call(t, e.connect(t, older, nil), "bad_json", nil)
	if got := text(t, r); !r.IsError || !strings.Contains(got, "bad_answer") {
		t.Errorf("got %s", got)
	}
}

// rawCall calls a tool with plain HTTP and returns the result as it was on the wire.
func rawCall(t *testing.T, e *endpoint, version, name string) json.RawMessage {
	t.Helper()
	var session string
	meta := ""
	if version == newer {
		meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newer + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"}},`
	} else {
		resp := e.post(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`, nil)
		session = resp.Header.Get("Mcp-Session-Id")
		readMessages(t, resp)
	}
	resp := e.post(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+meta+`"name":"`+name+`","arguments":{}}}`, map[string]string{
		"Mcp-Protocol-Version": version, "Mcp-Session-Id": session, "Mcp-Method": "tools/call", "Mcp-Name": name,
	})
	messages := readMessages(t, resp)
	var last struct {
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(messages[len(messages)-1], &last); err != nil || last.Result == nil {
		t.Fatalf("no result: %s %v", messages, err)
	}
	return last.Result
}

func (e *endpoint) post(t *testing.T, body string, header map[string]string) *http.Response {
	t.Helper()
	return e.request(t, http.MethodPost, body, header)
}

func (e *endpoint) request(t *testing.T, method, body string, header map[string]string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, e.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+frontendtest.Token)
	for k, v := range header {
		switch {
		case k == "Host":
			req.Host = v
		case v == "":
			req.Header.Del(k)
		default:
			req.Header.Set(k, v)
		}
	}
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	resp, err := (&http.Client{Transport: base}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// readMessages reads the JSON-RPC messages of an answer, from an event stream or a body.
func readMessages(t *testing.T, resp *http.Response) []json.RawMessage {
	t.Helper()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return []json.RawMessage{raw}
	}
	var messages []json.RawMessage
	for line := range strings.Lines(string(raw)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(data) != "" {
			messages = append(messages, json.RawMessage(data))
		}
	}
	if len(messages) == 0 {
		t.Fatalf("no message (HTTP %d): %s", resp.StatusCode, raw)
	}
	return messages
}

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

func TestProgressLogsAndCancellation(t *testing.T) {
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			p := providertest.New("jobs",
				providertest.Tool{
					Definition: tool.Definition{Name: "jobs_run"},
					Handler: func(_ context.Context, req *provider.Request) (*tool.Result, error) {
						for i := range 3 {
							req.Host.Progress(tool.Progress{Done: float64(i + 1), Total: 3, Note: "step"})
						}
						req.Host.Log(tool.LogRecord{Level: "info", Logger: "jobs", Data: json.RawMessage(`"working"`)})
						req.Host.Log(tool.LogRecord{Level: "debug", Data: json.RawMessage(`"too low"`)})
						return tool.TextResult("done"), nil
					},
				},
				providertest.Tool{
					Definition: tool.Definition{Name: "jobs_hang"},
					Handler: func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
						req.Host.Progress(tool.Progress{Done: 1})
						<-ctx.Done()
						ended <- ctx.Err()
						return nil, ctx.Err()
					},
				},
			)
			e := serve(t, p)
			progress, logs := make(chan string, 10), make(chan string, 10)
			s := e.connect(t, version, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
					progress <- fmt.Sprintf("%v %g/%g %s", r.Params.ProgressToken, r.Params.Progress, r.Params.Total, r.Params.Message)
				},
				LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) {
					logs <- fmt.Sprintf("%s %s %v", r.Params.Level, r.Params.Logger, r.Params.Data)
				},
			})
			params := &sdk.CallToolParams{Name: "jobs_run", Meta: sdk.Meta{"io.modelcontextprotocol/logLevel": "info"}}
			params.SetProgressToken("t1")
			if _, err := s.CallTool(t.Context(), params); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if got, want := <-progress, fmt.Sprintf("t1 %d/3 step", i+1); got != want {
					t.Errorf("progress %q, want %q", got, want)
				}
			}
			if got := <-logs; got != "info jobs working" {
				t.Errorf("log %q", got)
			}

			ctx, cancel := context.WithCancel(t.Context())
			hang := &sdk.CallToolParams{Name: "jobs_hang"}
			hang.SetProgressToken("t2")
			failed := make(chan error, 1)
			go func() { _, err := s.CallTool(ctx, hang); failed <- err }()
			<-progress
			cancel()
			if err := <-ended; err != context.Canceled {
				t.Errorf("the tool's context: %v", err)
			}
			if err := <-failed; err == nil {
				t.Error("the client got a result")
			}
			if len(logs) > 0 {
				t.Errorf("a debug line passed: %s", <-logs)
			}
		})
	}
}

func TestElicitation(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			runs := 0
			p := providertest.New("forms", providertest.Tool{
				Definition: tool.Definition{Name: "forms_ask"},
				Handler: func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
					runs++
					var all []string
					for range 2 {
						a, err := req.Host.Ask(ctx, provider.Question{Message: "where?", Schema: schema})
						if err != nil {
							return nil, err
						}
						all = append(all, a.Action+" "+string(a.Content))
					}
					return tool.TextResult(strings.Join(all, "; ")), nil
				},
			})
			e := serve(t, p)
			asked := 0
			s := e.connect(t, version, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				asked++
				if r.Params.Message != "where?" {
					t.Errorf("asked %q", r.Params.Message)
				}
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"city": fmt.Sprint("Lyon", asked)}}, nil
			}})
			got := text(t, call(t, s, "forms_ask", nil))
			if want := `accept {"city":"Lyon1"}; accept {"city":"Lyon2"}`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if asked != 2 || runs != 1 {
				t.Errorf("asked %d times in %d runs", asked, runs)
			}

			without := e.connect(t, version, nil)
			r := call(t, without, "forms_ask", nil)
			if got := text(t, r); !r.IsError || !strings.Contains(got, "unsupported") {
				t.Errorf("a client that cannot be asked: %s", got)
			}
		})
	}
}

func TestSampling(t *testing.T) {
	p := providertest.New("writer", providertest.Tool{
		Definition: tool.Definition{Name: "writer_draft"},
		Handler: func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
			raw, err := req.Host.Sample(ctx, json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10}`))
			if err != nil {
				return nil, err
			}
			return tool.TextResult(string(raw)), nil
		},
	})
	e := serve(t, p)
	s := e.connect(t, older, &sdk.ClientOptions{CreateMessageHandler: func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
		return &sdk.CreateMessageResult{Model: "m", Role: "assistant", Content: &sdk.TextContent{Text: "hello"}}, nil
	}})
	if got := text(t, call(t, s, "writer_draft", nil)); !strings.Contains(got, `"hello"`) {
		t.Errorf("got %s", got)
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

func TestNothingIsToldAfterTheAnswer(t *testing.T) {
	hosts := make(chan *provider.Host, 1)
	e := serve(t, providertest.New("jobs", providertest.Tool{
		Definition: tool.Definition{Name: "jobs_run"},
		Handler: func(_ context.Context, req *provider.Request) (*tool.Result, error) {
			hosts <- req.Host
			return tool.TextResult("done"), nil
		},
	}))
	conn := stream(t, e)
	lines := bufio.NewReader(conn)
	send := func(line string) {
		if _, err := io.WriteString(conn, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	var m struct{ ID int }
	go send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	readLine(t, lines, &m)
	go send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"jobs_run","_meta":{"progressToken":"p"}}}`)
	readLine(t, lines, &m)
	host := <-hosts
	host.Progress(tool.Progress{Done: 1})
	host.Log(tool.LogRecord{Level: "error", Data: json.RawMessage(`"late"`)})
	go send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	if readLine(t, lines, &m); m.ID != 3 {
		t.Errorf("got %+v", m)
	}
}
