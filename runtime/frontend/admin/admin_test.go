package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// daemon is a daemon as far as the front end asks it.
type daemon struct{ providers []provider.Provider }

func (d *daemon) Facts() admin.Facts {
	return admin.Facts{
		Version: "1.2.3", Started: time.Unix(1000, 0), ConfigPath: "/etc/hermesd/config.hcl",
		Addresses: []admin.Address{{Name: "mcp", Address: "http://127.0.0.1:7433/mcp"}}, Agents: []string{"desk", "other", "local"},
	}
}
func (d *daemon) Providers() []provider.Provider  { return d.providers }
func (d *daemon) InspectProvider(name string) any { return map[string]string{"binary": name} }
func (d *daemon) Forget(_ context.Context, agent, name string) (int, error) {
	return len(agent) + len(name), nil
}

func start(t *testing.T, opts *admin.Options, providers ...provider.Provider) (*admin.Client, *admin.Server, *frontendtest.World) {
	t.Helper()
	w := frontendtest.New(t, providers...)
	streams, err := mcp.New(&mcp.Options{Desk: w.Desk, Gate: frontend.NewGate(w.Agents, nil)})
	if err != nil {
		t.Fatal(err)
	}
	opts.Desk, opts.Catalog, opts.Daemon, opts.Streams = w.Desk, w.Catalog, &daemon{providers}, streams
	server, err := admin.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "admin.sock")
	l, err := admin.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket's mode: %v, %v", info.Mode(), err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), server.Close(), streams.Close(context.Background()), <-served); err != nil {
			t.Error(err)
		}
	})
	client, err := admin.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client, server, w
}

func TestStatusAndProviders(t *testing.T) {
	p := providertest.New("notes", providertest.Echo("notes_read"), providertest.Echo("notes_write"))
	c, _, _ := start(t, &admin.Options{}, p)
	status, err := c.Status(t.Context(), &adminpb.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if status.Pid != int32(os.Getpid()) || status.Tools != 2 || status.ProvidersReady != 1 || status.Version != "1.2.3" {
		t.Errorf("got %v", status)
	}
	if a := status.Agents[0]; a.Name != "desk" || a.Deferred != 2 || a.Tier != 1 {
		t.Errorf("the agent: %v", a)
	}
	p.SetStatus(provider.Backoff, "killed by SIGKILL")
	list, err := c.ListProviders(t.Context(), &adminpb.ListProvidersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got := list.Providers[0]; got.State != "backoff" || got.Reason != "killed by SIGKILL" || got.Tools != 2 {
		t.Errorf("got %v", got)
	}
	inspected, err := c.InspectProvider(t.Context(), &adminpb.InspectProviderRequest{Name: "notes"})
	if err != nil || len(inspected.Tools) != 2 || string(inspected.Detail) != `{"binary":"notes"}` {
		t.Errorf("got %v, %v", inspected, err)
	}
	if _, err = c.InspectProvider(t.Context(), &adminpb.InspectProviderRequest{Name: "nots"}); err == nil || err.Error() != `there is no provider "nots"; there is: notes` {
		t.Errorf("got %v", err)
	}
}

func TestAToolThatCannotBeUsedIsToldWithTheReason(t *testing.T) {
	bad := providertest.Echo("notes_bad")
	bad.InputSchema = json.RawMessage(`[]`)
	c, _, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read"), bad), providertest.New("other", providertest.Echo("b")))
	list, err := c.ListProviders(t.Context(), &adminpb.ListProvidersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	inspected, err := c.InspectProvider(t.Context(), &adminpb.InspectProviderRequest{Name: "notes"})
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]*adminpb.ProviderStatus{"list": list.Providers[0], "inspect": inspected.Status} {
		if len(got.Refused) != 1 || got.Refused["notes_bad"] == "" {
			t.Errorf("%s: %v", what, got)
		}
	}
	if got := list.Providers[1].Refused; len(got) != 0 {
		t.Errorf("of another provider: %v", got)
	}
}

// An operator who takes a toolset away and still meets its tools has to learn which other one brings them.
func TestAnExplanationNamesTheToolsetsThatBringTheTool(t *testing.T) {
	c, _, w := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	for name, granted := range map[string][]string{"every toolset": nil, "two": {"plugin:notes", "core", "plugin:*"}} {
		t.Run(name, func(t *testing.T) {
			w.Agents.Restrict(t, "desk", granted, nil)
			stream, err := c.ExplainCall(t.Context(), &adminpb.ExplainCallRequest{Agent: "desk", Name: "notes_read", Arguments: []byte(`{}`)})
			if err != nil {
				t.Fatal(err)
			}
			answer, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			var got []admin.Explanation
			if err := json.Unmarshal(answer.GetExplanation(), &got); err != nil || len(got) != 1 {
				t.Fatalf("%s, %v", answer.GetExplanation(), err)
			}
			want := []string{"*"}
			if granted != nil {
				want = []string{"plugin:notes", "plugin:*"}
			}
			if !slices.Equal(want, got[0].GrantedBy) {
				t.Errorf("granted by %q, want %q", got[0].GrantedBy, want)
			}
		})
	}
}

func TestToolsAsAnAgentHasThem(t *testing.T) {
	p := providertest.New("notes", providertest.Echo("notes_read"), providertest.Echo("notes_sync"))
	p.SetUnmet("notes_sync", "set NOTES_KEY")
	c, _, w := start(t, &admin.Options{}, p)
	w.Catalog.Refresh()
	list, err := c.ListTools(t.Context(), &adminpb.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if list.Agent != "local" || len(list.Tools) != 2 || !list.Tools[0].Deferred || list.Tools[1].Condition != "unmet" || list.Tools[1].Reason != "set NOTES_KEY" {
		t.Errorf("got %v", list)
	}
	found, err := c.Search(t.Context(), &adminpb.SearchRequest{Agent: "desk", Queries: []string{"notes"}, Explain: true})
	if err != nil || !strings.Contains(string(found.Result), `"notes_read"`) || !strings.Contains(string(found.Explanation), `"Words":[{"Word":"notes"`) {
		t.Errorf("got %s %s, %v", found.GetResult(), found.GetExplanation(), err)
	}
	forgotten, err := c.Forget(t.Context(), &adminpb.ForgetRequest{Agent: "desk", Tool: "a"})
	if err != nil || forgotten.Lessons != 5 {
		t.Errorf("got %v, %v", forgotten, err)
	}
	if _, err := c.Forget(t.Context(), &adminpb.ForgetRequest{Agent: "nobody"}); err == nil || !strings.Contains(err.Error(), "desk, other, local") {
		t.Errorf("forgetting of an unknown agent: %v", err)
	}
	described, err := c.Describe(t.Context(), &adminpb.DescribeRequest{Names: []string{"notes_read"}})
	if err != nil || !json.Valid(described.Result) || !strings.Contains(string(described.Result), "Echo") {
		t.Errorf("got %s, %v", described.GetResult(), err)
	}
	if _, err = c.Search(t.Context(), &adminpb.SearchRequest{Agent: "nobody"}); err == nil || !strings.Contains(err.Error(), "desk, other, local") {
		t.Errorf("an unknown agent: %v", err)
	}
	if _, err = c.Search(t.Context(), &adminpb.SearchRequest{}); err == nil || strings.Contains(err.Error(), "rpc error") {
		t.Errorf("a bad request: %v", err)
	}
}

func TestCallStreamsWhatTheToolSays(t *testing.T) {
	p := providertest.New("jobs", providertest.Tool{
		Definition: tool.Definition{Name: "jobs_run"},
		Handler: func(_ context.Context, req *provider.Request) (*tool.Result, error) {
			req.Host.Progress(tool.Progress{Done: 1, Total: 2, Note: "half"})
			req.Host.Log(tool.LogRecord{Level: "info", Data: json.RawMessage(`"hello"`)})
			return tool.TextResult(string(req.Call.Via) + string(req.Call.Arguments)), nil
		},
	})
	c, _, _ := start(t, &admin.Options{}, p)
	stream, err := c.Call(t.Context(), &adminpb.CallRequest{Name: "jobs_run", Arguments: []byte(`{"x":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := event.Event.(type) {
		case *adminpb.CallEvent_Progress:
			got = append(got, fmt.Sprint(e.Progress.Done, "/", e.Progress.Total, " ", e.Progress.Note))
		case *adminpb.CallEvent_Log:
			got = append(got, e.Log.Level+" "+string(e.Log.Data))
		case *adminpb.CallEvent_Result:
			got = append(got, string(e.Result.Result))
		}
	}
	want := `[1/2 half info "hello" {"content":[{"type":"text","text":"admin{\"x\":1}"}]}]`
	if fmt.Sprint(got) != want {
		t.Errorf("got %v\nwant %s", got, want)
	}
}

// attach copies between a session and a pair of streams until one of them ends.
func attach(c *admin.Client, agent string, in io.Reader, out io.Writer) error {
	a, err := c.Attach(context.Background(), agent, "test", "")
	if err != nil {
		return err
	}
	defer a.Close()
	go func() {
		if _, err := io.Copy(a, in); err == nil {
			a.CloseWrite()
		}
	}()
	_, err = io.Copy(out, a)
	return err
}

func TestAttachIsAnMCPSession(t *testing.T) {
	c, _, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	clientIn, toClient := io.Pipe()
	fromClient, clientOut := io.Pipe()
	attached := make(chan error, 1)
	go func() {
		attached <- attach(c, "desk", fromClient, toClient)
		toClient.Close()
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: clientIn, Writer: clientOut}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "notes_read", Arguments: map[string]any{"a": 1}})
	if err != nil || r.Content[0].(*sdk.TextContent).Text != `{"a":1}` {
		t.Errorf("got %v, %v", r, err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if err := <-attached; err != nil {
		t.Error(err)
	}
}

func TestAnAgentThatIsNotThereIsRefused(t *testing.T) {
	c, _, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	if err := attach(c, "nobody", strings.NewReader(""), io.Discard); !errors.Is(err, admin.ErrRefused) || !strings.HasPrefix(err.Error(), `there is no agent "nobody"`) {
		t.Errorf("attach: %v", err)
	}
	stream, err := c.Call(t.Context(), &adminpb.CallRequest{Agent: "nobody", Name: "notes_read"})
	if err == nil {
		_, err = stream.Recv()
	}
	if !errors.Is(err, admin.ErrRefused) {
		t.Errorf("call: %v", err)
	}
}

// hanging is a tool whose one call runs until it is cancelled. It says when that begins and how it ends.
func hanging(name string) (hang providertest.Tool, begun chan struct{}, ended chan error) {
	begun, ended = make(chan struct{}), make(chan error, 1)
	hang = providertest.Echo(name)
	hang.Handler = func(ctx context.Context, _ *provider.Request) (*tool.Result, error) {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	return hang, begun, ended
}

// A client that has said everything is answered; of one that is gone, nothing goes on.
func TestACallEndsWithAClientThatIsGone(t *testing.T) {
	hang, begun, ended := hanging("notes_hang")
	c, _, _ := start(t, &admin.Options{}, providertest.New("notes", hang))
	a, err := c.Attach(t.Context(), "desk", "test", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(a, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"name":"notes_hang"}}`+"\n")
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		if err != context.Canceled {
			t.Errorf("the tool's context: %v", err)
		}
	case <-time.After(5 * time.Second): // it would have 10 if the client had said everything
		t.Error("the call goes on")
	}
}

func TestCloseEndsAnAttachedSession(t *testing.T) {
	c, server, _ := start(t, &admin.Options{}, providertest.New("notes", providertest.Echo("notes_read")))
	in, hold := io.Pipe()
	defer hold.Close()
	out, toOut := io.Pipe()
	attached := make(chan error, 1)
	go func() { attached <- attach(c, "", in, toOut) }()
	go func() {
		_, err := hold.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"))
		if err != nil {
			t.Error(err)
		}
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, `"id":1`) {
		t.Fatalf("%s %v", line, err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	<-attached
}

func TestAllowDecidesByThePeersCredentials(t *testing.T) {
	peers := make(chan admin.Peer, 1)
	c, _, _ := start(t, &admin.Options{Allow: func(p admin.Peer) error {
		peers <- p
		return errors.New("it descends from a provider's process")
	}})
	for what, ask := range map[string]func() error{
		"a call":        func() error { _, err := c.Status(t.Context(), &adminpb.StatusRequest{}); return err },
		"an MCP stream": func() error { return attach(c, "desk", strings.NewReader(""), io.Discard) },
	} {
		if err := ask(); !errors.Is(err, admin.ErrRefused) || !strings.Contains(err.Error(), "it descends from") {
			t.Errorf("%s: %v", what, err)
		}
		if peer := <-peers; peer.PID != os.Getpid() || peer.UID != os.Getuid() {
			t.Errorf("%s: peer %+v", what, peer)
		}
	}
}

func TestSocketErrorsSayWhatToDo(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(dir, "stale")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	long := filepath.Join(dir, strings.Repeat("x", 200))
	live := filepath.Join(dir, "live")
	listening, err := admin.Listen(live)
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Close()

	dials := map[string]struct{ path, want string }{
		"nothing there":             {filepath.Join(dir, "none"), "start it with `hermesd serve`"},
		"left by an earlier daemon": {stale, "start it with `hermesd serve`"},
		"a path that is too long":   {long, "too long"},
		"no path":                   {"", "listen { admin }"},
	}
	for name, tt := range dials {
		t.Run("dial "+name, func(t *testing.T) {
			if _, err := admin.Dial(t.Context(), tt.path); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	listens := map[string]struct{ path, want string }{
		"a file that is no socket":      {file, "is no socket"},
		"a path that is too long":       {long, "too long"},
		"a directory that is not there": {filepath.Join(dir, "a", "b"), "directory that exists"},
		"another daemon's socket":       {live, "another daemon"},
	}
	for name, tt := range listens {
		t.Run("listen on "+name, func(t *testing.T) {
			if l, err := admin.Listen(tt.path); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, %v", l, err)
			}
		})
	}
	t.Run("what an earlier daemon left is taken over", func(t *testing.T) {
		l, err := admin.Listen(stale)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if _, err := os.Lstat(stale); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("still there: %v", err)
		}
	})
}
