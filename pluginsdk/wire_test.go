package pluginsdk_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/pluginsdk"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

func TestDescribeNeedsNoConfiguration(t *testing.T) {
	type config struct {
		Root string `json:"root"`
	}
	p := &pluginsdk.Plugin{Name: "d", Version: "1.2.3", Description: "x", Homepage: "https://example.org", License: "MIT",
		Capabilities: []string{pluginsdk.CanStore},
		Config:       pluginsdk.NewConfig(func(context.Context, config) error { return nil }),
		Hook:         func(context.Context, *pluginsdk.HookEvent) (*pluginsdk.Decision, error) { return nil, nil },
	}
	c := inProcess(t, p, 0)
	got, err := c.Describe(t.Context(), &pb.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := &pb.DescribeResponse{Name: "d", Version: "1.2.3", Description: "x", Homepage: "https://example.org", License: "MIT",
		ContractMin: 1, ContractMax: 1, Capabilities: []string{"store", "hooks"},
		ConfigSchema: []byte(`{"type":"object","properties":{"root":{"type":"string"}},"required":["root"],"additionalProperties":false}`)}
	if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&pb.DescribeResponse{}, "build")); diff != "" {
		t.Error(diff)
	}
	if got.GetBuild().GetSdk() != "hermesd-go/"+pluginsdk.Version || !strings.HasPrefix(got.GetBuild().GetLanguage(), "go1.") {
		t.Errorf("build = %v", got.GetBuild())
	}
}

func TestADefinitionCarriesWhatItsAuthorSaid(t *testing.T) {
	type in struct {
		A string `json:"a"`
	}
	type out struct {
		B int `json:"b"`
	}
	c := inProcess(t, &pluginsdk.Plugin{Name: "p", Version: "1", Tools: []pluginsdk.Tool{
		pluginsdk.NewTool("full", "D.", func(context.Context, in) (out, error) { return out{}, nil }, &pluginsdk.ToolOptions{
			Toolset: "set", Title: "T", ReadOnly: true, Idempotent: true, ParallelSafe: true, Destructive: new(false), OpenWorld: new(true),
			Coldness: pluginsdk.Cold, Keywords: []string{"k"}, Examples: []any{in{"x"}}, RequiresEnv: []string{"E"},
			Timeout: 1500 * 1e6, MaxResultBytes: 7, Meta: map[string]any{"m": 1},
		}),
		pluginsdk.NewTool("bare", "", nothing, nil),
	}}, 0)
	tools, _, _ := listTools(t, c)
	yes, no := true, false
	want := []*pb.ToolDefinition{
		{Name: "full", Toolset: "set", Title: "T", Description: "D.", Coldness: "cold", Keywords: []string{"k"},
			InputSchema:  []byte(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`),
			OutputSchema: []byte(`{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"],"additionalProperties":false}`),
			Annotations:  &pb.Annotations{ReadOnly: &yes, Idempotent: &yes, ParallelSafe: &yes, Destructive: &no, OpenWorld: &yes},
			Examples:     [][]byte{[]byte(`{"a":"x"}`)}, RequiresEnv: []string{"E"}, TimeoutMs: 1500, MaxResultBytes: 7, Meta: []byte(`{"m":1}`)},
		{Name: "bare", InputSchema: []byte(`{"type":"object","properties":{},"additionalProperties":false}`), Annotations: &pb.Annotations{}},
	}
	if diff := cmp.Diff(want, tools, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// manyTools are n definitions of about size bytes each.
func manyTools(n, size int) []pluginsdk.Tool {
	tools := make([]pluginsdk.Tool, n)
	for i := range tools {
		tools[i] = pluginsdk.NewRawTool(fmt.Sprintf("tool_%04d", i), strings.Repeat("d", size), json.RawMessage(`{"type":"object"}`), raw, nil)
	}
	return tools
}

func TestThousandsOfToolsComeInPagesWithAHashOverAll(t *testing.T) {
	// Together far more than the message limit.
	c := inProcess(t, &pluginsdk.Plugin{Name: "many", Version: "1", Tools: manyTools(1500, 1000)}, 1<<20)
	tools, pages, hash := listTools(t, c)
	if len(tools) != 1500 || pages < 4 {
		t.Errorf("%d tools in %d pages", len(tools), pages)
	}
	// The rule of plugin.proto, spelled out once more.
	h := sha256.New()
	for _, d := range tools {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	if want := "sha256:" + hex.EncodeToString(h.Sum(nil)); hash != want {
		t.Errorf("hash = %s, want %s", hash, want)
	}
	if _, _, again := listTools(t, c); again != hash {
		t.Errorf("a second time it is %s", again)
	}
}

func TestAPluginWithoutToolsListsAnEmptyPage(t *testing.T) {
	c := inProcess(t, &pluginsdk.Plugin{Name: "none", Version: "1", ListTools: func(context.Context) ([]pluginsdk.Tool, error) { return nil, nil }}, 0)
	configure(t, c, "")
	if tools, pages, hash := listTools(t, c); len(tools) != 0 || pages != 1 || hash == "" {
		t.Errorf("%d tools in %d pages, hash %q", len(tools), pages, hash)
	}
}

func TestAResultLargerThanAMessageComesInPieces(t *testing.T) {
	big := strings.Repeat("0123456789", 300_000) // 3 MB against a limit of 1 MiB
	blocks := []pluginsdk.Content{pluginsdk.Text("small"), pluginsdk.Text(big), pluginsdk.Text("")}
	p := &pluginsdk.Plugin{Name: "big", Version: "1", Tools: []pluginsdk.Tool{
		pluginsdk.NewTool("blocks", "", func(context.Context, struct{}) ([]pluginsdk.Content, error) { return blocks, nil }, nil),
		pluginsdk.NewTool("structured", "", func(context.Context, struct{}) (*pluginsdk.Result, error) {
			return &pluginsdk.Result{Structured: map[string]string{"a": big}, IsError: true, Meta: map[string]any{"m": 1}}, nil
		}, nil),
		pluginsdk.NewTool("limited", "", func(context.Context, struct{}) ([]pluginsdk.Content, error) { return blocks, nil }, &pluginsdk.ToolOptions{MaxResultBytes: 1000}),
	}}
	const limit = 1 << 20
	c := inProcess(t, p, limit)
	if _, err := c.Configure(t.Context(), &pb.ConfigureRequest{MaxMessageBytes: limit}); err != nil {
		t.Fatal(err)
	}
	o := invoke(t, c, "blocks", `{}`)
	if len(o.content) != 3 || o.chunks < 4 {
		t.Fatalf("%d blocks in %d pieces", len(o.content), o.chunks)
	}
	for i, want := range blocks {
		if !bytes.Equal(o.content[i], want) {
			t.Errorf("block %d differs", i)
		}
	}
	o = invoke(t, c, "structured", `{}`)
	if string(o.structured) != `{"a":"`+big+`"}` || !o.result.GetIsError() || string(o.result.GetMeta()) != `{"m":1}` {
		t.Errorf("structured has %d bytes, error %v, meta %s", len(o.structured), o.result.GetIsError(), o.result.GetMeta())
	}
	for name, req := range map[string]*pb.InvokeRequest{
		"by the tool": {Tool: "limited"}, "by the host": {Tool: "blocks", MaxResultBytes: 1000}, "by the smaller": {Tool: "limited", MaxResultBytes: 1 << 30},
	} {
		o := call(t, c, req, nil)
		if o.err.GetCode() != "result_too_large" || o.chunks != 0 || !strings.Contains(o.err.GetMessage(), "limit is 1000") {
			t.Errorf("limited %s: %v", name, o.err)
		}
	}
	// Without a limit from the host, one message holds it all.
	c = inProcess(t, p, 0)
	configure(t, c, "")
	if o := invoke(t, c, "blocks", `{}`); o.chunks != 0 || len(o.content) != 3 {
		t.Errorf("%d pieces", o.chunks)
	}
}

func TestDrainWaitsForRunningCallsAndRefusesNewOnes(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	c := serveTools(t, pluginsdk.NewTool("wait", "", func(context.Context, struct{}) (string, error) {
		close(started)
		<-release
		return "done", nil
	}, nil))
	running := make(chan outcome, 1)
	go func() { running <- invoke(t, c, "wait", `{}`) }()
	<-started
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Drain(short, &pb.DrainRequest{}); err == nil {
		t.Error("drained while a call runs")
	}
	drained := make(chan error, 1)
	go func() {
		_, err := c.Drain(t.Context(), &pb.DrainRequest{})
		drained <- err
	}()
	for { // the drain's own beginning is seen through Health, which is never held up
		h, err := c.Health(t.Context(), &pb.HealthRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if h.GetRunningCalls() != 1 {
			t.Fatalf("running = %d", h.GetRunningCalls())
		}
		if h.GetDraining() {
			break
		}
	}
	if o := invoke(t, c, "wait", `{}`); o.err.GetCode() != "not_sent" || !o.err.GetRetryable() {
		t.Errorf("a new call: %v", o.err)
	}
	select {
	case err := <-drained:
		t.Errorf("drained too early: %v", err)
	default:
	}
	close(release)
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if o := <-running; o.text() != "done" {
		t.Errorf("the running call: %v", o.err)
	}
}

func TestAvailabilityIsAnsweredByToolAndToolset(t *testing.T) {
	const key = "HERMESD_TEST_KEY"
	at := func(set string, f func(context.Context) error, env ...string) *pluginsdk.ToolOptions {
		return &pluginsdk.ToolOptions{Toolset: set, Available: f, RequiresEnv: env}
	}
	c := serveTools(t,
		pluginsdk.NewTool("always", "", nothing, at("a", nil)),
		pluginsdk.NewTool("never", "", nothing, at("a", func(context.Context) error { return errors.New("no disk: insert one") })),
		pluginsdk.NewTool("keyed", "", nothing, at("b", nil, key)),
		pluginsdk.NewTool("panics", "", nothing, at("b", func(context.Context) error { panic("oh") })),
	)
	yes := &pb.Availability{Available: true}
	no := func(reason string) *pb.Availability { return &pb.Availability{Reason: reason} }
	unset := no("the environment variable " + key + " is not set; the operator must name it in pass_env (or set it in env) in the plugin's block")
	for name, tc := range map[string]struct {
		req  *pb.CheckAvailabilityRequest
		want map[string]*pb.Availability
	}{
		"all":          {&pb.CheckAvailabilityRequest{}, map[string]*pb.Availability{"always": yes, "never": no("no disk: insert one"), "keyed": unset, "panics": no("the tool's availability check panicked: oh")}},
		"one tool":     {&pb.CheckAvailabilityRequest{Tools: []string{"always"}}, map[string]*pb.Availability{"always": yes}},
		"a toolset":    {&pb.CheckAvailabilityRequest{Toolsets: []string{"a"}}, map[string]*pb.Availability{"always": yes, "never": no("no disk: insert one")}},
		"both":         {&pb.CheckAvailabilityRequest{Tools: []string{"keyed"}, Toolsets: []string{"a"}}, map[string]*pb.Availability{"always": yes, "never": no("no disk: insert one"), "keyed": unset}},
		"unknown tool": {&pb.CheckAvailabilityRequest{Tools: []string{"x"}}, map[string]*pb.Availability{"x": no("the plugin has no such tool")}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.CheckAvailability(t.Context(), tc.req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.GetTools(), protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Setenv(key, "set")
	got, err := c.CheckAvailability(t.Context(), &pb.CheckAvailabilityRequest{Tools: []string{"keyed"}})
	if err != nil || !got.GetTools()["keyed"].GetAvailable() {
		t.Errorf("with the key: %v, %v", got, err)
	}
}

func TestAConfigurationIsDecodedOrRefusedWithPaths(t *testing.T) {
	type config struct {
		Root  string `json:"root"`
		Depth int    `json:"depth,omitempty" default:"3" minimum:"1"`
	}
	fault := func(sev pb.Diagnostic_Severity, path, summary, detail string) *pb.Diagnostic {
		return &pb.Diagnostic{Severity: sev, Path: path, Summary: summary, Detail: detail}
	}
	const failed, warned = pb.Diagnostic_SEVERITY_ERROR, pb.Diagnostic_SEVERITY_WARNING
	for name, tc := range map[string]struct {
		config string
		err    error
		want   []*pb.Diagnostic
		works  bool
	}{
		"a good one":            {`{"root":"/x"}`, nil, nil, true},
		"a missing key":         {``, nil, []*pb.Diagnostic{fault(failed, "", `missing properties: ["root"]`, "")}, false},
		"a value out of range":  {`{"root":"/x","depth":0}`, nil, []*pb.Diagnostic{fault(failed, "/depth", "/depth must be at least 1", "")}, false},
		"what a schema misses":  {`{"root":"/x"}`, &pluginsdk.ConfigError{Path: "/root", Summary: "no such directory", Detail: "make it"}, []*pb.Diagnostic{fault(failed, "/root", "no such directory", "make it")}, false},
		"a plain error":         {`{"root":"/x"}`, errors.New("no"), []*pb.Diagnostic{fault(failed, "", "no", "")}, false},
		"a warning is no error": {`{"root":"/x"}`, &pluginsdk.ConfigError{Path: "/root", Summary: "slow", Warning: true}, []*pb.Diagnostic{fault(warned, "/root", "slow", "")}, true},
		"several": {`{"root":"/x"}`, errors.Join(&pluginsdk.ConfigError{Path: "/root", Summary: "a"}, errors.New("b")),
			[]*pb.Diagnostic{fault(failed, "/root", "a", ""), fault(failed, "", "b", "")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var got *config
			p := &pluginsdk.Plugin{Name: "p", Version: "1", Tools: []pluginsdk.Tool{pluginsdk.NewTool("t", "", nothing, nil)},
				Config: pluginsdk.NewConfig(func(_ context.Context, c config) error { got = &c; return tc.err })}
			c := inProcess(t, p, 0)
			if diff := cmp.Diff(tc.want, configure(t, c, tc.config), protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
			if tc.works && (got == nil || *got != config{"/x", 3}) {
				t.Errorf("config = %+v", got)
			}
			_, err := c.Configure(t.Context(), &pb.ConfigureRequest{Config: []byte(tc.config)})
			if again := status.Code(err) == codes.FailedPrecondition; again != tc.works {
				t.Errorf("a second time: %v", err)
			}
		})
	}
}

func TestAPluginWithoutConfigTakesNone(t *testing.T) {
	for config, want := range map[string]string{"": "", "{}": "", `{"a":1}`: "takes no configuration", `[`: "no JSON object"} {
		c := inProcess(t, echoPlugin(), 0)
		d := configure(t, c, config)
		if want == "" && len(d) > 0 || want != "" && (len(d) != 1 || !strings.Contains(d[0].GetSummary(), want)) {
			t.Errorf("%q: %v", config, d)
		}
	}
}

func TestAFaultyListOfToolsIsAConfigurationError(t *testing.T) {
	for name, list := range map[string]func(context.Context) ([]pluginsdk.Tool, error){
		"an error": func(context.Context) ([]pluginsdk.Tool, error) { return nil, errors.New("no catalog") },
		"a panic":  func(context.Context) ([]pluginsdk.Tool, error) { panic("no catalog") },
		"a faulty tool": func(context.Context) ([]pluginsdk.Tool, error) {
			return []pluginsdk.Tool{pluginsdk.NewTool("no catalog", "", nothing, nil)}, nil
		},
	} {
		c := inProcess(t, &pluginsdk.Plugin{Name: "p", Version: "1", ListTools: list}, 0)
		d := configure(t, c, "")
		if len(d) != 1 || !strings.Contains(d[0].GetSummary(), "cannot list its tools") || !strings.Contains(d[0].GetDetail(), "no catalog") {
			t.Errorf("%s: %v", name, d)
		}
		stream, err := c.ListTools(t.Context(), &pb.ListToolsRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != codes.Internal {
			t.Errorf("%s: ListTools: %v", name, err)
		}
	}
}

func TestAHookDecides(t *testing.T) {
	event := `{"event":"pre_tool_call","tool_name":"t","agent":"ann","session_id":"s","args":{"n":9007199254740993},"later":1}`
	for name, tc := range map[string]struct {
		decision *pluginsdk.Decision
		err      error
		want     string
	}{
		"allows without a word": {nil, nil, `{"action":"allow"}`},
		"blocks":                {&pluginsdk.Decision{Action: pluginsdk.Block, Message: "a<b"}, nil, `{"action":"block","message":"a<b"}`},
		"modifies":              {&pluginsdk.Decision{Action: pluginsdk.Modify, Args: map[string]any{"n": 1}, RuleKey: "k"}, nil, `{"action":"modify","args":{"n":1},"rule_key":"k"}`},
		"fails":                 {nil, errors.New("no database"), ""},
		"decides on nonsense":   {&pluginsdk.Decision{Action: "maybe"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var seen *pluginsdk.HookEvent
			p := &pluginsdk.Plugin{Name: "hook", Version: "1", Hook: func(_ context.Context, e *pluginsdk.HookEvent) (*pluginsdk.Decision, error) {
				seen = e
				return tc.decision, tc.err
			}}
			c := inProcess(t, p, 0)
			configure(t, c, "")
			r, err := c.Intercept(t.Context(), &pb.InterceptRequest{Payload: []byte(event)})
			if string(r.GetDecision()) != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("decision = %s, %v", r.GetDecision(), err)
			}
			if seen.Tool != "t" || seen.Agent != "ann" || string(seen.Args) != `{"n":9007199254740993}` || string(seen.Raw) != event {
				t.Errorf("event = %+v", seen)
			}
		})
	}
	c := inProcess(t, &pluginsdk.Plugin{Name: "hook", Version: "1", Hook: func(context.Context, *pluginsdk.HookEvent) (*pluginsdk.Decision, error) { panic("oh") }}, 0)
	for payload, want := range map[string]string{event: "oh", "{": "cannot be read"} {
		if _, err := c.Intercept(t.Context(), &pb.InterceptRequest{Payload: []byte(payload)}); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", payload, err)
		}
	}
	if _, err := inProcess(t, echoPlugin(), 0).Intercept(t.Context(), &pb.InterceptRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("no hook: %v", err)
	}
}
