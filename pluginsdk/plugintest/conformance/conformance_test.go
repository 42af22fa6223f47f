package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/hermesd/hermesd/internal/testbin"
	"github.com/hermesd/hermesd/pluginsdk"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/conformance"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/wire"
	"github.com/hermesd/hermesd/runtime/pluginhost"
)

// TestMain silences the plugins, which log every panic.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

type text struct {
	Text string `json:"text" maxLength:"200000"`
}

type settings struct {
	Root string `json:"root,omitempty"`
}

// sound is a plugin that keeps the contract.
func sound() *pluginsdk.Plugin {
	return &pluginsdk.Plugin{
		Name: "sound", Version: "1.0.0", Config: pluginsdk.NewConfig(func(context.Context, settings) error { return nil }),
		Tools: []pluginsdk.Tool{
			pluginsdk.NewTool("echo", "Echoes.", func(_ context.Context, in text) (text, error) { return in, nil },
				&pluginsdk.ToolOptions{ReadOnly: true, ParallelSafe: true, Examples: []any{text{"hi"}}}),
			pluginsdk.NewTool("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}, nil),
			pluginsdk.NewTool("panic", "Panics.", func(context.Context, struct{}) (string, error) { panic("oh dear") }, nil),
			pluginsdk.NewTool("big", "A long text.", func(context.Context, struct{}) (string, error) {
				return strings.Repeat("x", 200_000), nil
			}, nil),
		},
	}
}

func options() *conformance.Options {
	return &conformance.Options{
		Slow:         []conformance.Call{{Tool: "wait", Arguments: json.RawMessage(`{}`)}},
		Panics:       []conformance.Call{{Tool: "panic", Arguments: json.RawMessage(`{}`)}},
		Calls:        []conformance.Call{{Tool: "big", Arguments: json.RawMessage(`{}`)}},
		CancelWithin: 300 * time.Millisecond,
	}
}

// run checks a plugin whose server has been tampered with and returns the findings by name.
func run(t *testing.T, p func() *pluginsdk.Plugin, tamper func(pb.PluginServer) pb.PluginServer, only ...string) map[string]conformance.Finding {
	t.Helper()
	opts := options()
	opts.Only = only
	target := wire.InProcess{New: func() (pb.PluginServer, error) {
		s, err := pluginsdk.NewServer(p())
		if err == nil && tamper != nil {
			s = tamper(s)
		}
		return s, err
	}}
	report, err := conformance.Check(t.Context(), target, opts)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]conformance.Finding{}
	for _, f := range report.Findings {
		byName[f.Check] = f
	}
	return byName
}

func TestASoundPluginPassesEveryCheckThatCanBeTried(t *testing.T) {
	for name, f := range run(t, sound, nil) {
		want := conformance.Pass
		switch name {
		case "stdout", "lifeline", "hosted": // of a process
			want = conformance.Skip
		}
		if f.Status != want {
			t.Errorf("%s: %s %v %s", name, f.Status, f.Faults, f.Note)
		}
	}
}

// tampered answers some RPCs itself.
type tampered struct {
	pb.PluginServer
	describe  func(*pb.DescribeResponse)
	configure func(*pb.ConfigureResponse)
	list      func(*pb.ListToolsResponse)
	invoke    func(*pb.InvokeRequest, grpc.ServerStreamingServer[pb.InvokeResponse]) error
	check     func(*pb.CheckAvailabilityResponse)
	watch     func() error
	drain     func() (*pb.DrainResponse, error)
	health    func(*pb.HealthResponse)
}

func (s *tampered) Describe(ctx context.Context, r *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	a, err := s.PluginServer.Describe(ctx, r)
	if s.describe != nil {
		a = proto.CloneOf(a)
		s.describe(a)
	}
	return a, err
}

func (s *tampered) Configure(ctx context.Context, r *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	a, err := s.PluginServer.Configure(ctx, r)
	if s.configure != nil {
		s.configure(a)
	}
	return a, err
}

func (s *tampered) ListTools(r *pb.ListToolsRequest, stream grpc.ServerStreamingServer[pb.ListToolsResponse]) error {
	if s.list == nil {
		return s.PluginServer.ListTools(r, stream)
	}
	return s.PluginServer.ListTools(r, &editing{stream, s.list})
}

// editing changes the pages of a list.
type editing struct {
	grpc.ServerStreamingServer[pb.ListToolsResponse]
	edit func(*pb.ListToolsResponse)
}

func (e *editing) Send(page *pb.ListToolsResponse) error {
	page = proto.CloneOf(page)
	e.edit(page)
	return e.ServerStreamingServer.Send(page)
}

func (s *tampered) Invoke(r *pb.InvokeRequest, stream grpc.ServerStreamingServer[pb.InvokeResponse]) error {
	if s.invoke != nil {
		return s.invoke(r, stream)
	}
	return s.PluginServer.Invoke(r, stream)
}

func (s *tampered) CheckAvailability(ctx context.Context, r *pb.CheckAvailabilityRequest) (*pb.CheckAvailabilityResponse, error) {
	a, err := s.PluginServer.CheckAvailability(ctx, r)
	if s.check != nil {
		s.check(a)
	}
	return a, err
}

func (s *tampered) Watch(r *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchResponse]) error {
	if s.watch != nil {
		return s.watch()
	}
	return s.PluginServer.Watch(r, stream)
}

func (s *tampered) Drain(ctx context.Context, r *pb.DrainRequest) (*pb.DrainResponse, error) {
	if s.drain != nil {
		return s.drain()
	}
	return s.PluginServer.Drain(ctx, r)
}

func (s *tampered) Health(ctx context.Context, r *pb.HealthRequest) (*pb.HealthResponse, error) {
	a, err := s.PluginServer.Health(ctx, r)
	if s.health != nil {
		s.health(a)
	}
	return a, err
}

// always answers every call with one event.
func always(e *pb.InvokeResponse) func(*pb.InvokeRequest, grpc.ServerStreamingServer[pb.InvokeResponse]) error {
	return func(_ *pb.InvokeRequest, stream grpc.ServerStreamingServer[pb.InvokeResponse]) error {
		return stream.Send(e)
	}
}

func content(block string) *pb.InvokeResponse {
	return &pb.InvokeResponse{Event: &pb.InvokeResponse_Result{Result: &pb.Result{Content: [][]byte{[]byte(block)}}}}
}

func failing(code string) *pb.InvokeResponse {
	return &pb.InvokeResponse{Event: &pb.InvokeResponse_Error{Error: &pb.Error{Code: code, Message: "no"}}}
}

func TestEachCheckFindsItsFault(t *testing.T) {
	instances := 0
	for name, c := range map[string]struct {
		check  string
		tamper tampered
		want   string
	}{
		"a name that is none":        {"describe", tampered{describe: func(d *pb.DescribeResponse) { d.Name = "a b" }}, `name "a b"`},
		"no version":                 {"describe", tampered{describe: func(d *pb.DescribeResponse) { d.Version = "" }}, "no version"},
		"another contract":           {"describe", tampered{describe: func(d *pb.DescribeResponse) { d.ContractMin, d.ContractMax = 7, 8 }}, "must include 1"},
		"a description that changes": {"describe", tampered{describe: func(d *pb.DescribeResponse) { instances++; d.Description = strings.Repeat("x", instances) }}, "two descriptions differ"},
		"an unknown capability":      {"describe", tampered{describe: func(d *pb.DescribeResponse) { d.Capabilities = []string{"fly"} }}, `capability "fly"`},
		"a config schema of no type": {"describe", tampered{describe: func(d *pb.DescribeResponse) { d.ConfigSchema = []byte(`{}`) }}, "config_schema"},
		"a refused configuration":    {"configure", tampered{configure: func(r *pb.ConfigureResponse) { r.Diagnostics = []*pb.Diagnostic{{Summary: "no"}} }}, "refuses its configuration"},
		"tools that change": {"list", tampered{list: func(p *pb.ListToolsResponse) {
			instances++
			p.Hash, p.Tools[0].Title = "", strings.Repeat("x", instances)
		}}, "lists other tools"},
		"two tools of one name": {"list", tampered{list: func(p *pb.ListToolsResponse) { p.Hash, p.Tools[1].Name = "", "echo" }}, `two tools are named "echo"`},
		"a wrong hash":          {"list", tampered{list: func(p *pb.ListToolsResponse) { p.Hash = "sha256:00" }}, "the hash is sha256:00"},
		"no description":        {"list", tampered{list: func(p *pb.ListToolsResponse) { p.Hash, p.Tools[0].Description = "", " " }}, "has no description"},
		"a schema that is broken": {"schemas", tampered{list: func(p *pb.ListToolsResponse) {
			p.Hash, p.Tools[0].InputSchema = "", []byte(`{"type":"object","properties":{"a":{"type":"strng"}}}`)
		}}, `tool "echo": input_schema`},
		"a schema of a list":         {"schemas", tampered{list: func(p *pb.ListToolsResponse) { p.Hash, p.Tools[0].InputSchema = "", []byte(`{"type":"array"}`) }}, `its type must be "object"`},
		"an example that misfits":    {"examples", tampered{list: func(p *pb.ListToolsResponse) { p.Hash, p.Tools[0].Examples = "", [][]byte{[]byte(`{"text":1}`)} }}, "example 1"},
		"an unanswered availability": {"rpcs", tampered{check: func(r *pb.CheckAvailabilityResponse) { delete(r.Tools, "echo") }}, `does not answer for "echo"`},
		"a watch that is not there":  {"rpcs", tampered{watch: func() error { return errors.New("what?") }}, "Watch"},
		"an accepted configuration":  {"config-errors", tampered{configure: func(r *pb.ConfigureResponse) { r.Diagnostics = nil }}, "is accepted"},
		"a diagnostic without a path": {"config-errors", tampered{configure: func(r *pb.ConfigureResponse) {
			for _, d := range r.Diagnostics {
				d.Path = ""
			}
		}}, "it must be /root"},
		"arguments that are not checked": {"bad-arguments", tampered{invoke: always(content(`{"type":"text"}`))}, "does not fit its schema"},
		"a refusal with another code":    {"bad-arguments", tampered{invoke: always(failing("tool_failed"))}, "must be invalid_arguments"},
		"a tool that nobody listed":      {"unknown-tool", tampered{invoke: always(content(`{"type":"text"}`))}, "gives a result"},
		"content that is no block":       {"results", tampered{invoke: always(content(`"text"`))}, "content block 0"},
		"no structured result":           {"results", tampered{invoke: always(content(`{"type":"text"}`))}, "gives no structured result"},
		"a call without an end":          {"results", tampered{invoke: func(*pb.InvokeRequest, grpc.ServerStreamingServer[pb.InvokeResponse]) error { return nil }}, "without a result"},
		"an error without a code":        {"results", tampered{invoke: always(failing(""))}, "both must be set"},
		"more than was asked for":        {"big-results", tampered{invoke: always(content(`{"type":"text"}`))}, "result_too_large"},
		"a message that is too large":    {"big-results", tampered{invoke: always(content(`{"type":"text","text":"` + strings.Repeat("x", 100_000) + `"}`))}, "in chunks"},
		"a bad answer among many calls":  {"concurrent", tampered{invoke: always(content(`1`))}, "content block 0"},
		"a call that never ends":         {"cancel", tampered{health: func(h *pb.HealthResponse) { h.RunningCalls = 1 }}, "does not end within"},
		"a panic that is something else": {"panic", tampered{invoke: always(failing("tool_failed"))}, "must be plugin_panic"},
		"a drain that does nothing":      {"drain", tampered{drain: func() (*pb.DrainResponse, error) { return &pb.DrainResponse{}, nil }}, "not_sent"},
	} {
		t.Run(name, func(t *testing.T) {
			f := run(t, sound, func(s pb.PluginServer) pb.PluginServer {
				tampered := c.tamper
				tampered.PluginServer = s
				return &tampered
			}, c.check)[c.check]
			if f.Status != conformance.Fail || !strings.Contains(strings.Join(f.Faults, "\n"), c.want) {
				t.Errorf("%s: %s %v, want a fault with %q", c.check, f.Status, f.Faults, c.want)
			}
		})
	}
}

func TestAGoroutineThatStaysIsFound(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	f := run(t, func() *pluginsdk.Plugin {
		p := sound()
		p.Tools[0] = pluginsdk.NewTool("echo", "Echoes.", func(_ context.Context, in text) (text, error) {
			go func() { <-stop }()
			return in, nil
		}, &pluginsdk.ToolOptions{ReadOnly: true, Examples: []any{text{"hi"}}})
		return p
	}, nil, "leaks")["leaks"]
	if f.Status != conformance.Fail || !strings.Contains(f.Faults[0], "goroutines are left") {
		t.Errorf("%s %v", f.Status, f.Faults)
	}
}

// misbehave answers every RPC, but knows no lifeline and checks nothing.
func TestAProcessThatBreaksRulesIsFound(t *testing.T) {
	path := testbin.Build(t, "internal/testbin/misbehave")
	report, err := conformance.Check(t.Context(), wire.Program{Path: path}, &conformance.Options{
		Hosted: &pluginhost.Options{Path: path, Isolation: pluginhost.IsolationNone},
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.OK() {
		t.Error("it is said to keep the contract")
	}
	var b bytes.Buffer
	if _, err := report.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"FAIL  lifeline", "FAIL  bad-arguments"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &b)
		}
	}
}

func TestAProcessThatDoesNotStartIsExplained(t *testing.T) {
	for mode, want := range map[string]string{
		"exit-at-start":  "cannot open the database",
		"talk-first":     "Welcome to the plugin!",
		"wrong-version":  "the versions 1 and 9",
		"wrong-protocol": `the protocol "netrpc"`,
	} {
		report, err := conformance.Check(t.Context(), wire.Program{Path: testbin.Build(t, "internal/testbin/misbehave"), Args: []string{mode}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Findings) != 1 || !strings.Contains(strings.Join(report.Findings[0].Faults, ""), want) {
			t.Errorf("%s: %+v, want %q", mode, report.Findings, want)
		}
	}
}
