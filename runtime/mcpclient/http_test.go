package mcpclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serve runs a handler on loopback until the test ends.
func serve(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// streamableHandler serves an SDK server. Sessions that nobody ended, because the server went first, end with the test.
func streamableHandler(t testing.TB, s *mcp.Server, o *mcp.StreamableHTTPOptions) http.Handler {
	t.Cleanup(func() {
		for session := range s.Sessions() {
			session.Close()
		}
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, o)
}

var legacyOnly = &mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25", "2025-06-18"}}

func TestServersOverHTTP(t *testing.T) {
	for name, h := range map[string]http.Handler{
		"protocol 2025-11-25, event streams": streamableHandler(t, newSDKServer(legacyOnly), nil),
		"protocol 2025-11-25, no session":    streamableHandler(t, newSDKServer(legacyOnly), &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}),
		"protocol 2026-07-28, no session":    streamableHandler(t, newSDKServer(nil), &mcp.StreamableHTTPOptions{Stateless: true}),
		"only HTTP with SSE":                 mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return newSDKServer(legacyOnly) }, nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, mcpclient.Options{URL: serve(t, h).URL, Parallel: true})
			o := r.ready()
			if len(o.Tools) != 5 {
				t.Fatalf("%d tools", len(o.Tools))
			}
			r.alive()
			if got := r.text("big", "{}", nil); len(got) != 2<<20 {
				t.Errorf("got %d bytes", len(got))
			}
			ctx, cancel := within(t.Context(), 50*time.Millisecond)
			defer cancel()
			r.fails(ctx, r.request("block", "{}", nil), tool.Timeout)
			r.alive()
			if s := r.Offer().Status; s.Restarts != 0 {
				t.Errorf("the connection was rebuilt: %+v", s)
			}
		})
	}
}

func TestProgressLogsAndQuestionsOverHTTP(t *testing.T) {
	for name, h := range map[string]http.Handler{
		"protocol 2025-11-25": streamableHandler(t, newSDKServer(legacyOnly), nil),
		"protocol 2026-07-28": streamableHandler(t, newSDKServer(nil), &mcp.StreamableHTTPOptions{Stateless: true}),
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, mcpclient.Options{URL: serve(t, h).URL, Parallel: true})
			r.ready()
			var got []string
			host := &provider.Host{
				OnProgress: func(p tool.Progress) { got = append(got, fmt.Sprintf("%v/%v %s", p.Done, p.Total, p.Note)) },
				OnLog:      func(l tool.LogRecord) { got = append(got, fmt.Sprintf("%s %s %s", l.Level, l.Logger, l.Data)) },
			}
			r.text("progress", "{}", host)
			want := []string{"1/3 step 1", `warning sdk {"step":1}`, "2/3 step 2", `warning sdk {"step":2}`, "3/3 step 3", `warning sdk {"step":3}`}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}

			// Two agents ask at the same time: over HTTP each question finds its own.
			var both sync.WaitGroup
			arrived := make(chan struct{}, 2)
			proceed := make(chan struct{})
			for _, agent := range []string{"desk", "phone"} {
				both.Go(func() {
					host := &provider.Host{OnAsk: func(_ context.Context, q provider.Question) (provider.Answer, error) {
						arrived <- struct{}{}
						<-proceed
						if q.Message != agent {
							t.Errorf("%s was asked %q", agent, q.Message)
						}
						return provider.Answer{Action: "accept", Content: json.RawMessage(fmt.Sprintf(`{"name":%q}`, agent))}, nil
					}}
					req := r.request("ask", fmt.Sprintf(`{"message":%q,"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`, agent), host)
					req.Call.Agent = agent
					result, err := r.Invoke(t.Context(), req)
					if err != nil {
						t.Error(err)
						return
					}
					if !strings.HasPrefix(result.Text(), fmt.Sprintf("accept map[name:%s]", agent)) {
						t.Errorf("%s got %s", agent, result.Text())
					}
				})
			}
			<-arrived
			<-arrived
			close(proceed)
			both.Wait()
		})
	}
}

// switchable is a server whose handler can be taken away and replaced, as by a restart.
type switchable struct {
	h atomic.Pointer[http.Handler]
}

func (s *switchable) set(h http.Handler) { s.h.Store(&h) }
func (s *switchable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*s.h.Load()).ServeHTTP(w, r)
}

func TestAServerThatForgotTheSessionGetsANewOne(t *testing.T) {
	sw := &switchable{}
	sw.set(streamableHandler(t, newSDKServer(legacyOnly), nil))
	r := start(t, mcpclient.Options{URL: serve(t, sw).URL})
	r.ready()
	r.alive()
	sw.set(streamableHandler(t, newSDKServer(legacyOnly), nil)) // knows no session
	r.alive()
}

func TestAServerThatStartsLateIsFound(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	for _, lazy := range []bool{false, true} {
		t.Run(fmt.Sprintf("lazy is %v", lazy), func(t *testing.T) {
			r := start(t, mcpclient.Options{URL: "http://" + address, Lazy: lazy})
			o := r.await("a failed start", func(o *provider.Offer) bool { return o.Status.State == provider.Backoff })
			if !strings.Contains(o.Status.Reason, "connection refused") {
				t.Errorf("the reason is %q", o.Status.Reason)
			}
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			s := &http.Server{Handler: streamableHandler(t, newSDKServer(legacyOnly), nil)}
			var serving sync.WaitGroup
			serving.Go(func() { s.Serve(l) })
			r.await("the late server", func(o *provider.Offer) bool { return len(o.Tools) > 0 })
			r.alive()

			s.Close()
			serving.Wait()
			r.await("the loss to be noticed", func(o *provider.Offer) bool { return o.Status.State != provider.Ready })
			if len(r.Offer().Tools) == 0 {
				t.Error("the tools vanished with the server")
			}
		})
	}
}

func TestHeadersGoToTheConfiguredHostOnly(t *testing.T) {
	var leaked atomic.Int32
	other := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked.Add(1)
		http.Error(w, "no", http.StatusTeapot)
	}))
	sdk := streamableHandler(t, newSDKServer(legacyOnly), nil)
	for name, c := range map[string]struct {
		h      http.HandlerFunc
		reason string
	}{
		"a redirect elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "HTTP 307"},
		"an SSE endpoint elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				http.Error(w, "no", http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", other.URL)
		}, "names another host"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, mcpclient.Options{URL: serve(t, c.h).URL, Headers: map[string]string{"Authorization": "Bearer secret"}})
			o := r.await("a failed start", func(o *provider.Offer) bool { return o.Status.State == provider.Backoff })
			if !strings.Contains(o.Status.Reason, c.reason) {
				t.Errorf("the reason is %q", o.Status.Reason)
			}
		})
	}
	if n := leaked.Load(); n != 0 {
		t.Errorf("%d requests reached the other host", n)
	}
	t.Run("a redirect on the same host is followed with them", func(t *testing.T) {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Header.Get("Authorization") != "Bearer secret":
				http.Error(w, "who are you?", http.StatusUnauthorized)
			case r.URL.Path == "/mcp":
				http.Redirect(w, r, "/mcp/", http.StatusPermanentRedirect)
			default:
				sdk.ServeHTTP(w, r)
			}
		})
		r := start(t, mcpclient.Options{URL: serve(t, h).URL + "/mcp", Headers: map[string]string{"Authorization": "Bearer secret"}})
		r.ready()
		r.alive()
	})
	t.Run("without the right ones the operator is told", func(t *testing.T) {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you?", http.StatusUnauthorized) })
		r := start(t, mcpclient.Options{URL: serve(t, h).URL})
		o := r.await("a failed start", func(o *provider.Offer) bool { return o.Status.State == provider.Backoff })
		if !strings.Contains(o.Status.Reason, "HTTP 401 Unauthorized; log in: hermesd mcp-server login kb; or give the block's headers a valid Authorization: who are you?") {
			t.Errorf("the reason is %q", o.Status.Reason)
		}
	})
}

// faultyHTTP is a server over HTTP, written by hand, that misbehaves in tools/call as the tool's name says.
func faultyHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "no", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var m rpc
	if json.Unmarshal(body, &m) != nil {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	answer := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
	stream := func() {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
	}
	switch m.Method {
	case "server/discover":
		http.Error(w, "Bad Request", http.StatusBadRequest) // no JSON-RPC: fatal to the SDK's own transport
	case "initialize":
		answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"faulty","version":"1"}}`)
	case "ping":
		answer(`{}`)
	case "tools/list":
		var tools []string
		for _, name := range strings.Fields("echo cut hang garbage html status503 status500 rpcstatus nothing huge resumed") {
			tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
		}
		answer(`{"tools":[` + strings.Join(tools, ",") + `]}`)
	case "tools/call":
		var p struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		json.Unmarshal(m.Params, &p)
		switch p.Name {
		case "echo":
			answer(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, p.Arguments))
		case "cut":
			stream()
			panic(http.ErrAbortHandler)
		case "hang":
			stream()
			<-r.Context().Done()
		case "garbage":
			stream()
			fmt.Fprintf(w, "event: message\ndata: {garbage\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", m.ID)
		case "html":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
		case "status503":
			http.Error(w, "busy", http.StatusServiceUnavailable)
		case "status500":
			http.Error(w, "broken", http.StatusInternalServerError)
		case "rpcstatus":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"city is missing"}}`, m.ID)
		case "nothing":
			w.WriteHeader(http.StatusAccepted)
		case "huge":
			answer(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 200_000) + `"}]}`)
		}
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func TestABrokenStreamIsResumed(t *testing.T) {
	var id atomic.Pointer[string]
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			last := r.Header.Get("Last-Event-ID")
			if last != "e1" {
				http.Error(w, "no", http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"resumed\"}]}}\n\n", *id.Load())
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if strings.Contains(string(body), `"resumed"`) {
			var m rpc
			json.Unmarshal(body, &m)
			s := string(m.ID)
			id.Store(&s)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: e1\nretry: 10\ndata:\n\n")
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		faultyHTTP(w, r)
	})
	r := start(t, mcpclient.Options{URL: serve(t, h).URL})
	r.ready()
	if got := r.text("resumed", "{}", nil); got != "resumed" {
		t.Error(got)
	}
}

func TestArgumentsAreRepeatedInHeadersWhereASchemaAsks(t *testing.T) {
	s := newSDKServer(nil)
	s.AddTool(&mcp.Tool{Name: "routed", InputSchema: json.RawMessage(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			h := r.Extra.Header
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: h.Get("Mcp-Param-Region") + " " + h.Get("Mcp-Param-N") + " " + h.Get("Mcp-Name")}}}, nil
		})
	r := start(t, mcpclient.Options{URL: serve(t, streamableHandler(t, s, &mcp.StreamableHTTPOptions{Stateless: true})).URL})
	r.ready()
	if got := r.text("routed", `{"region":"eu","deep":{"n":7}}`, nil); got != "eu 7 routed" {
		t.Error(got)
	}
	if got := r.text("routed", `{"region":"é"}`, nil); got != "=?base64?w6k=?=  routed" {
		t.Error(got)
	}
}

func TestAChangedListIsOfferedOverHTTP(t *testing.T) {
	for name, c := range map[string]struct {
		server *mcp.ServerOptions
		http   *mcp.StreamableHTTPOptions
	}{
		"by the GET stream of 2025-11-25":   {legacyOnly, nil},
		"by the subscription of 2026-07-28": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSDKServer(c.server)
			r := start(t, mcpclient.Options{URL: serve(t, streamableHandler(t, s, c.http)).URL})
			r.ready()
			s.AddTool(&mcp.Tool{Name: "new", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
			r.await("the new tool", func(o *provider.Offer) bool { return len(o.Tools) == 6 })
		})
	}
}
