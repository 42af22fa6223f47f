package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/testbin"
)

// upstream is an MCP server over HTTP that can be taken away and brought back on its port.
type upstream struct {
	t       *testing.T
	address string
	server  *http.Server
	kill    context.CancelFunc
	serving sync.WaitGroup
}

// newUpstream takes a port that nobody answers on.
func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{t: t, address: freeAddress(t)}
	t.Cleanup(u.down)
	return u
}

func (u *upstream) up(s *sdk.Server) {
	u.t.Helper()
	l, err := net.Listen("tcp", u.address)
	if err != nil {
		u.t.Fatal(err)
	}
	life, kill := context.WithCancel(context.Background())
	u.kill = kill
	u.server = &http.Server{
		Handler:     sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil),
		BaseContext: func(net.Listener) context.Context { return life },
	}
	u.serving.Go(func() {
		if err := u.server.Serve(l); err != http.ErrServerClosed {
			u.t.Error(err)
		}
	})
}

func (u *upstream) down() {
	if u.server == nil {
		return
	}
	u.kill()
	if err := u.server.Close(); err != nil {
		u.t.Error(err)
	}
	u.serving.Wait()
	u.server = nil
}

func (u *upstream) block(name string) string {
	return fmt.Sprintf("mcp_server %q {\n  url = \"http://%s/mcp\"\n  connect_timeout = \"2s\"\n  timeout = \"5s\"\n}\n", name, u.address)
}

// offering is a server with tools of these names, which say who they are.
func offering(names ...string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "upstream", Version: "1"}, nil)
	for _, name := range names {
		s.AddTool(&sdk.Tool{Name: name, Description: "Does " + name + ".", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "this is " + name}}}, nil
		})
	}
	return s
}

// steadily calls a tool without a pause until the test stops it. Each call has to succeed within the bound.
func steadily(t *testing.T, s *sdk.ClientSession, tool string, most time.Duration) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var calls atomic.Int64
	var caller sync.WaitGroup
	caller.Go(func() {
		for ctx.Err() == nil {
			begun := time.Now()
			r, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: tool})
			if took := time.Since(begun); err != nil || r.IsError || took > most {
				t.Errorf("%s took %v: %v %+v", tool, took, err, r)
				return
			}
			calls.Add(1)
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		caller.Wait()
		if calls.Load() == 0 {
			t.Errorf("%s was never called", tool)
		}
	})
}

// Servers that are dead, missing, silent, late and dying: the others go on, nothing is hidden, and who comes back is found
// without a restart of the daemon.
func TestServersThatFailHarmNoOther(t *testing.T) {
	over := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(over) })
	late, dying := newUpstream(t), newUpstream(t)
	dying.up(offering("archive", "publish"))
	d := start(t, fmt.Sprintf("tools {\n  tool_search {\n    enabled = \"on\"\n  }\n}\nmcp_server \"well\" {\n  command = [%q]\n}\n", testbin.Build(t, "internal/testbin/mcpserver"))+
		"mcp_server \"dead\" {\n  command = [\"/bin/false\"]\n}\nmcp_server \"missing\" {\n  command = [\"no-such-program-here\"]\n}\n"+
		fmt.Sprintf("mcp_server \"silent\" {\n  url = %q\n  connect_timeout = \"1s\"\n}\n", silent.URL)+
		late.block("late")+dying.block("dying"))
	ready(t, d, "mcp__well__test_simple_text", "mcp__dying__archive")
	s := d.connect(nil)
	stop := steadily(t, s, "mcp__well__test_simple_text", 10*time.Second)
	defer stop()
	search := func(query string) string {
		text, _ := call(t, s, "tool_search", map[string]any{"queries": []string{query}})
		return text
	}

	t.Run("what is not there is told with the reason", func(t *testing.T) {
		eventually(t, "each is named", func() bool {
			text := search("archive a document")
			for _, reason := range []string{"dead", "missing", "no-such-program-here", "silent", "late", "connection refused"} {
				if !strings.Contains(text, reason) {
					return false
				}
			}
			return true
		})
	})
	before := string(d.raw("tools/list", "{}"))
	t.Run("a server that dies keeps its place, and a call of it says so in time", func(t *testing.T) {
		dying.down()
		eventually(t, "the loss is told", func() bool {
			begun := time.Now()
			text, isError := call(t, s, "mcp__dying__archive", nil)
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("a call took %v", took)
			}
			return isError && (strings.Contains(text, "provider_starting") || strings.Contains(text, "provider_down"))
		})
		if text := search("archive a document"); !strings.Contains(text, "mcp__dying__archive") {
			t.Errorf("it has vanished: %s", text)
		}
		if now := string(d.raw("tools/list", "{}")); now != before {
			t.Errorf("the agent's list has changed:\n%s\n%s", before, now)
		}
	})
	t.Run("it comes back, with other tools", func(t *testing.T) {
		dying.up(offering("archive", "shred"))
		eventually(t, "it answers, and the next search knows what it has", func() bool {
			text, isError := call(t, s, "mcp__dying__archive", nil)
			found := search("shred")
			return !isError && text == "this is archive" && strings.Contains(found, "mcp__dying__shred") && !strings.Contains(search("publish"), "mcp__dying__publish")
		})
	})
	t.Run("a server that starts late is found", func(t *testing.T) {
		late.up(offering("translate"))
		eventually(t, "its tool runs", func() bool {
			text, isError := call(t, s, "mcp__late__translate", nil)
			return !isError && text == "this is translate" && strings.Contains(search("translate"), "mcp__late__translate")
		})
	})
	stop()
}

// A hundred servers start, a few at a time, and two hundred sessions come and go without a process left over.
func TestManyServersAndSessions(t *testing.T) {
	const servers, sessions = 100, 200
	mux := http.NewServeMux()
	var blocks strings.Builder
	fmt.Fprintf(&blocks, "mcp_server \"local\" {\n  command = [%q]\n}\n", testbin.Build(t, "internal/testbin/mcpserver"))
	hs := httptest.NewServer(mux)
	t.Cleanup(hs.Close) // after the daemon
	names := []string{"mcp__local__test_simple_text"}
	for i := range servers {
		upstream := offering("work")
		mux.Handle(fmt.Sprintf("/%d", i), sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return upstream }, nil))
		fmt.Fprintf(&blocks, "mcp_server \"s%d\" {\n  url = \"%s/%d\"\n}\n", i, hs.URL, i)
		names = append(names, fmt.Sprintf("mcp__s%d__work", i))
	}
	d := start(t, blocks.String())
	begun := time.Now()
	ready(t, d, names...)
	t.Logf("%d servers after %v", servers, time.Since(begun))
	children := len(descendants(t, d.cmd.Process.Pid))
	for range sessions {
		client := sdk.NewClient(&sdk.Implementation{Name: "passer-by", Version: "1"}, nil)
		s, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: d.url + "/mcp"}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		if text, isError := call(t, s, "mcp__local__test_simple_text", nil); isError {
			t.Fatal(text)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if now := len(descendants(t, d.cmd.Process.Pid)); now > children+2 { // the local server and its shim may not have run before
		t.Errorf("%d processes after %d sessions, %d before", now, sessions, children)
	}
}

// Progress and cancellation cross every layer, in both generations.
func TestProgressAndCancellationOfALongCall(t *testing.T) {
	server := offering()
	ended := make(chan struct{}, 1)
	next := make(chan struct{})
	server.AddTool(&sdk.Tool{Name: "steps", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 5 {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 5}); err != nil {
				return nil, err
			}
			select {
			case <-next:
			case <-ctx.Done():
				ended <- struct{}{}
				return nil, ctx.Err()
			}
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil
	})
	u := newUpstream(t)
	u.up(server)
	d := start(t, u.block("long"))
	ready(t, d, "mcp__long__steps")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			progress := make(chan float64, 10)
			client := sdk.NewClient(&sdk.Implementation{Name: "patient", Version: "1"}, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
			})
			s, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: d.url + "/mcp"}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close() //nolint:errcheck // the test is over
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			begin := func(ctx context.Context) <-chan error {
				params := &sdk.CallToolParams{Name: "mcp__long__steps"}
				params.SetProgressToken("p" + version)
				failed := make(chan error, 1)
				go func() { _, err := s.CallTool(ctx, params); failed <- err }()
				return failed
			}
			step := func(want float64) {
				t.Helper()
				select {
				case got := <-progress:
					if got != want {
						t.Errorf("step %v, want %v", got, want)
					}
				case <-ctx.Done():
					t.Fatalf("step %v never came", want)
				}
			}
			failed := begin(ctx)
			for i := range 5 {
				step(float64(i + 1))
				next <- struct{}{}
			}
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
			cancelled, giveUp := context.WithCancel(ctx)
			defer giveUp()
			failed = begin(cancelled)
			step(1)
			next <- struct{}{}
			step(2)
			giveUp()
			select {
			case <-ended:
			case <-ctx.Done():
				t.Error("the server was not told")
			}
			if err := <-failed; err == nil {
				t.Error("the client got a result")
			}
		})
	}
}
