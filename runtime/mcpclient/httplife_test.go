package mcpclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// transports are the servers over HTTP that a client has to get on with.
var transports = map[string]func(t testing.TB, s *mcp.Server) http.Handler{
	"protocol 2025-11-25": func(t testing.TB, s *mcp.Server) http.Handler { return streamableHandler(t, s, nil) },
	"protocol 2026-07-28": func(t testing.TB, s *mcp.Server) http.Handler {
		return streamableHandler(t, s, &mcp.StreamableHTTPOptions{Stateless: true})
	},
	"only HTTP with SSE": func(_ testing.TB, s *mcp.Server) http.Handler {
		return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
	},
}

func versionsOf(transport string) *mcp.ServerOptions {
	if transport == "protocol 2026-07-28" {
		return nil
	}
	return legacyOnly
}

// load calls a tool from several goroutines until it is stopped, and reports every call that failed in a way that may not be.
func (r *running) load(callers int, may ...tool.Code) (stop func() (calls int64)) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req := r.request("echo", `{"a":1}`, nil)
	var all sync.WaitGroup
	var calls atomic.Int64
	for range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				_, err := r.Invoke(context.Background(), req)
				allowed := err == nil
				for _, code := range may {
					allowed = allowed || tool.CodeOf(err) == code
				}
				if !allowed {
					r.t.Errorf("a call under load: %s %v", tool.CodeOf(err), err)
					return
				}
				calls.Add(1)
			}
		})
	}
	stop = func() int64 {
		cancel()
		all.Wait()
		return calls.Load()
	}
	r.t.Cleanup(func() { stop() })
	return stop
}

func TestAListThatChangesUnderLoadOverHTTP(t *testing.T) {
	for name, handler := range transports {
		t.Run(name, func(t *testing.T) {
			s := newSDKServer(versionsOf(name))
			r := startHTTP(t, handler(t, s))
			before := len(r.ready().Tools)
			beside(t, func() {
				stop := r.load(4)
				const changes = 100
				for i := range changes {
					s.AddTool(&mcp.Tool{Name: fmt.Sprint("new", i), InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						return &mcp.CallToolResult{}, nil
					})
					if i%2 == 1 {
						s.RemoveTools(fmt.Sprint("new", i-1))
					}
				}
				r.await("the last list", func(o *provider.Offer) bool {
					return len(o.Tools) == before+changes/2 && slices.ContainsFunc(o.Tools, func(d tool.Definition) bool { return d.OwnName == fmt.Sprint("new", changes-1) })
				})
				if calls := stop(); calls == 0 {
					t.Error("nothing was called meanwhile")
				}
			})
			if s := r.Offer().Status; s.Restarts != 0 {
				t.Errorf("the connection was rebuilt: %+v", s)
			}
		})
	}
}

// A server that forgets its sessions has run none of the calls that it refuses for that: they are sent again.
func TestAServerThatForgetsSessionsUnderLoad(t *testing.T) {
	server := &faultHTTP{}
	r := startHTTP(t, server)
	r.ready()
	stop := r.load(4)
	for range 2 {
		for begun := time.Now(); time.Since(begun) < 1100*time.Millisecond; { // a server that forgets faster than that is left alone for a while
			r.alive()
		}
		seen := server.times("initialize")
		server.forget()
		for deadline := time.Now().Add(patience); server.times("initialize") == seen; {
			if time.Now().After(deadline) {
				t.Fatal("no new session was begun")
			}
			r.alive()
		}
	}
	if calls := stop(); calls == 0 {
		t.Error("nothing was called")
	}
	r.alive()
}

// listener serves on an address that it keeps, between deaths.
type listener struct {
	t       *testing.T
	address string
	server  *http.Server
	kill    context.CancelFunc
	serving sync.WaitGroup
}

func (l *listener) up(h http.Handler) {
	l.t.Helper()
	if l.address == "" {
		l.address = "127.0.0.1:0"
	}
	on, err := net.Listen("tcp", l.address)
	if err != nil {
		l.t.Fatal(err)
	}
	l.address = on.Addr().String()
	life, kill := context.WithCancel(context.Background())
	l.kill = kill
	l.server = &http.Server{Handler: h, BaseContext: func(net.Listener) context.Context { return life }}
	l.serving.Go(func() { l.server.Serve(on) })
}

// down is a death: connections break.
func (l *listener) down() {
	l.server.Close()
	l.kill() // Close overlooks a connection that is accepted at the same moment
	l.serving.Wait()
}

func TestAServerOverHTTPThatIsRestartedOnItsPort(t *testing.T) {
	for name, handler := range transports {
		t.Run(name, func(t *testing.T) {
			l := &listener{t: t}
			l.up(handler(t, newSDKServer(versionsOf(name))))
			r := start(t, mcpclient.Options{URL: "http://" + l.address, Parallel: true})
			known := len(r.ready().Tools)
			beside(t, func() {
				for round := range 2 {
					r.alive()
					stop := r.load(4, tool.OutcomeUnknown, tool.NotSent, tool.ProviderStarting, tool.ProviderDown)
					l.down()
					if round == 1 { // long enough to be noticed without a call
						r.await("the loss to be noticed", func(o *provider.Offer) bool { return o.Status.State != provider.Ready })
					}
					if n := len(r.Offer().Tools); n < known {
						t.Errorf("%d of %d tools are left", n, known)
					}
					s := newSDKServer(versionsOf(name))
					s.AddTool(&mcp.Tool{Name: fmt.Sprint("of-life-", round), InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						return &mcp.CallToolResult{}, nil
					})
					l.up(handler(t, s))
					r.await("the new life's tools", func(o *provider.Offer) bool {
						return o.Status.State == provider.Ready && slices.ContainsFunc(o.Tools, func(d tool.Definition) bool { return d.OwnName == fmt.Sprint("of-life-", round) })
					})
					stop()
				}
			})
			r.stop()
			l.down()
		})
	}
}

// What a GET stream does concerns no call.
func TestFaultsOfTheStreamOfNotifications(t *testing.T) {
	for name, fault := range map[string]httpFault{
		"its headers never come":  hang("", ""),
		"it is closed at once":    cut(eventStream, ""),
		"it ends at once":         whole(eventStream, ""),
		"it is no stream":         whole("text/html", "<html>"),
		"it fails":                status(http.StatusInternalServerError),
		"it is refused":           status(http.StatusUnauthorized),
		"it floods with pings":    endlessly(eventStream, "", `data: {"jsonrpc":"2.0","id":"p","method":"ping"}`+"\n\n"),
		"it floods with requests": endlessly(eventStream, "", `data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}`+"\n\n"),
		"it floods with changes":  endlessly(eventStream, "", `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n\n"),
		"it floods with lines":    endlessly(eventStream, "", logEvent),
		"it has an endless event": endlessly(eventStream, "data: ", "x"),
		"it is a bomb":            bomb(eventStream, "data: "),
	} {
		t.Run(name, func(t *testing.T) {
			server := &faultHTTP{}
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					fault(w, r, &rpc{})
					return
				}
				server.ServeHTTP(w, r)
			})
			before := memory()
			r := startHTTP(t, h, limited)
			r.ready()
			beside(t, func() {
				for range 50 {
					r.alive()
				}
				// Floods go on for a while.
				ctx, cancel := within(t.Context(), 150*time.Millisecond)
				defer cancel()
				r.fails(ctx, r.request("headers_never_come", "{}", nil), tool.Timeout)
				r.alive()
			})
			if s := r.Offer().Status; s.Restarts != 0 {
				t.Errorf("the connection was rebuilt: %+v", s)
			}
			if grown := memory() - before; grown > 32<<20 {
				t.Errorf("%d MiB more are in use", grown>>20)
			}
		})
	}
}

func TestACallThatIsRedirectedElsewhereTellsNobodyTheToken(t *testing.T) {
	var leaked atomic.Int32
	other := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Add(1) }))
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			server := &faultHTTP{}
			r := startHTTP(t, server, func(o *mcpclient.Options) { o.Headers = map[string]string{"Authorization": "Bearer secret"} })
			r.ready()
			server.set("tools/call", status(code, "Location", other.URL+"/mcp"))
			e := r.fails(t.Context(), r.request("echo", "{}", nil), tool.DownstreamFailed)
			if !strings.Contains(e.Message, fmt.Sprint("HTTP ", code)) {
				t.Error(e)
			}
			server.set("", nil)
			r.alive()
		})
	}
	if n := leaked.Load(); n != 0 {
		t.Errorf("%d requests reached the other host", n)
	}
}

func TestABusyServerSaysWhenToTryAgain(t *testing.T) {
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		server := &faultHTTP{}
		r := startHTTP(t, server)
		r.ready()
		server.set("tools/call", status(code, "Retry-After", "7"))
		e := r.fails(t.Context(), r.request("echo", "{}", nil), tool.DownstreamFailed)
		if !e.Retryable || !strings.Contains(e.Message, "try again in 7s") || !strings.Contains(e.Message, "did not run") {
			t.Errorf("%d: the agent reads %q", code, e.Message)
		}
	}
}

// Reads of resources are told apart as calls are: what may have reached the server, and what certainly did not.
func TestAReadWhoseServerDies(t *testing.T) {
	server := &faultHTTP{}
	r := startHTTP(t, server)
	r.ready()
	read := func() error {
		_, err := r.Fetch(t.Context(), &provider.Fetch{Method: provider.ReadResource, Name: "x:y", Params: json.RawMessage(`{"uri":"x:y"}`)})
		return err
	}
	for name, c := range map[string]struct {
		fault httpFault
		code  tool.Code
	}{
		"in the middle of the answer":       {cut(jsonText, `{"jsonrpc":`), tool.OutcomeUnknown},
		"before the answer":                 {cut("", ""), tool.OutcomeUnknown},
		"having sent half of it":            {whole(jsonText, `{"jsonrpc":`), tool.OutcomeUnknown},
		"it is busy":                        {status(http.StatusServiceUnavailable), tool.DownstreamFailed},
		"it sends more than the limit":      {endlessly(jsonText, "[", "1,"), tool.ResultTooLarge},
		"it forgot the session, and is new": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server.set(provider.ReadResource, c.fault)
			if c.fault == nil {
				server.set(provider.ReadResource, whole(jsonText, `{"jsonrpc":"2.0","id":ID,"result":{"contents":[]}}`))
				server.forget()
			}
			if err := read(); tool.CodeOf(err) != c.code {
				t.Errorf("got %s %v, want %s", tool.CodeOf(err), err, c.code)
			}
			r.on(t).alive()
		})
	}
}
