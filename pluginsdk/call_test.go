package pluginsdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/pluginsdk"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"google.golang.org/protobuf/testing/protocmp"
)

// serveTools serves tools in process, configured.
func serveTools(t *testing.T, tools ...pluginsdk.Tool) pb.PluginClient {
	t.Helper()
	c := inProcess(t, &pluginsdk.Plugin{Name: "test", Version: "1.0.0", Tools: tools}, 0)
	configure(t, c, "")
	return c
}

func TestArgumentsAreCheckedAndCompletedBeforeTheHandlerRuns(t *testing.T) {
	type nested struct {
		N int `json:"n,omitempty" default:"5"`
	}
	type args struct {
		City  string    `json:"city" minLength:"2"`
		Units string    `json:"units,omitempty" enum:"metric,imperial" default:"metric"`
		Days  int       `json:"days,omitempty" minimum:"1" maximum:"7" default:"3"`
		Tags  []string  `json:"tags,omitempty" default:"[\"x\"]"`
		Small int8      `json:"small,omitempty"`
		When  time.Time `json:"when,omitzero"`
		In    nested    `json:"in"`
	}
	c := serveTools(t, pluginsdk.NewTool("t", "", func(_ context.Context, in args) (string, error) {
		return fmt.Sprintf("%s %s %d %v %d", in.City, in.Units, in.Days, in.Tags, in.In.N), nil
	}, nil))
	for name, tc := range map[string]struct {
		args, want, pointer, message string
	}{
		"defaults are filled in":         {`{"city":"Rome","in":{}}`, "Rome metric 3 [x] 5", "", ""},
		"what is given wins":             {`{"city":"Rome","units":"imperial","days":1,"tags":["a"],"in":{"n":1}}`, "Rome imperial 1 [a] 1", "", ""},
		"an empty list is given too":     {`{"city":"Rome","tags":[],"in":{}}`, "Rome metric 3 [] 5", "", ""},
		"a missing argument":             {`{"in":{}}`, "", "", `"city"`},
		"a missing object":               {`{"city":"Rome"}`, "", "", `"in"`},
		"a wrong type":                   {`{"city":1,"in":{}}`, "", "/city", "string"},
		"a value that is not allowed":    {`{"city":"Rome","units":"kelvin","in":{}}`, "", "/units", "/units must be one of [metric imperial]"},
		"a number out of range":          {`{"city":"Rome","days":9,"in":{}}`, "", "/days", "/days must be at most 7"},
		"a string that is too short":     {`{"city":"R","in":{}}`, "", "/city", "/city must have at least 2 characters"},
		"a fault further in":             {`{"city":"Rome","in":{"n":"x"}}`, "", "/in/n", "integer"},
		"an unknown argument":            {`{"city":"Rome","in":{},"zip":1}`, "", "", "zip"},
		"an unknown argument further in": {`{"city":"Rome","in":{"m":1}}`, "", "/in", "m"},
		"a time that is none":            {`{"city":"Rome","in":{},"when":"noon"}`, "", "", "noon"},
		"a list instead of an object":    {`[1]`, "", "", "object"},
		"a number that no type holds":    {`{"city":"Rome","in":{},"days":1e400}`, "", "", "the number 1e400 is out of range"},
		"null":                           {`null`, "", "", "must be a JSON object"},
		"no JSON":                        {`{"city":`, "", "", "cannot be read"},
		"two objects":                    {`{"city":"Rome","in":{}}{}`, "", "", "cannot be read"},
		"no arguments at all":            {``, "", "", `"city"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := invoke(t, c, "t", tc.args)
			if tc.want != "" {
				if o.text() != tc.want {
					t.Errorf("result = %q, error = %v", o.text(), o.err)
				}
				return
			}
			if o.err.GetCode() != "invalid_arguments" || o.err.GetBlame() != "caller" || o.err.GetPointer() != tc.pointer || !strings.Contains(o.err.GetMessage(), tc.message) {
				t.Errorf("error = %v", o.err)
			}
		})
	}
}

func TestLargeIntegersArriveUnchanged(t *testing.T) {
	type args struct {
		N int64 `json:"n"`
	}
	c := serveTools(t,
		pluginsdk.NewTool("typed", "", func(_ context.Context, in args) (args, error) { return in, nil }, nil),
		pluginsdk.NewRawTool("raw", "", json.RawMessage(`{"type":"object"}`), func(_ context.Context, in json.RawMessage) (*pluginsdk.Result, error) {
			return &pluginsdk.Result{Structured: in}, nil
		}, nil))
	const want = `{"n":9007199254740993}` // 2^53 + 1
	for _, tool := range []string{"typed", "raw"} {
		if got := string(invoke(t, c, tool, want).structured); got != want {
			t.Errorf("%s = %s", tool, got)
		}
	}
}

func TestWhatAHandlerReturnsBecomesTheResult(t *testing.T) {
	type object struct {
		A string `json:"a"`
	}
	tool := func(name string, out any) pluginsdk.Tool {
		return pluginsdk.NewTool(name, "", func(context.Context, struct{}) (any, error) { return out, nil }, nil)
	}
	c := serveTools(t,
		tool("string", "<plain>"), tool("object", object{"<&>"}), tool("list", []int{1, 2}), tool("number", 7), tool("nil", nil),
		tool("blocks", []pluginsdk.Content{pluginsdk.Text("a"), pluginsdk.Text("b")}),
		tool("result", &pluginsdk.Result{Content: []pluginsdk.Content{pluginsdk.Text("x")}, Structured: object{"y"}, IsError: true, Meta: map[string]any{"k": 1}}),
		tool("value", pluginsdk.Result{}), tool("empty", (*pluginsdk.Result)(nil)),
	)
	text := func(s string) []byte { return []byte(pluginsdk.Text(s)) }
	for name, want := range map[string]*pb.Result{
		"string": {Content: [][]byte{text("<plain>")}},
		"object": {Content: [][]byte{text(`{"a":"<&>"}`)}, Structured: []byte(`{"a":"<&>"}`)},
		"list":   {Content: [][]byte{text(`[1,2]`)}},
		"number": {Content: [][]byte{text(`7`)}},
		"nil":    {Content: [][]byte{text(`null`)}},
		"blocks": {Content: [][]byte{text("a"), text("b")}},
		"result": {Content: [][]byte{text("x")}, Structured: []byte(`{"a":"y"}`), IsError: true, Meta: []byte(`{"k":1}`)},
		"value":  {},
		"empty":  {},
	} {
		o := invoke(t, c, name, `{}`)
		if diff := cmp.Diff(want, o.result, protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAResultThatCannotBeEncodedIsAToolFailure(t *testing.T) {
	c := serveTools(t,
		pluginsdk.NewTool("channel", "", func(context.Context, struct{}) (any, error) { return make(chan int), nil }, nil),
		pluginsdk.NewTool("block", "", func(context.Context, struct{}) ([]pluginsdk.Content, error) {
			return []pluginsdk.Content{pluginsdk.Content("{")}, nil
		}, nil))
	for tool, want := range map[string]string{"channel": "cannot be encoded", "block": "content block 0 is no JSON"} {
		if o := invoke(t, c, tool, `{}`); o.err.GetCode() != "tool_failed" || !strings.Contains(o.err.GetMessage(), want) {
			t.Errorf("%s: %v", tool, o.err)
		}
	}
}

func TestContentBlocksHaveTheFormOfMCP(t *testing.T) {
	for want, got := range map[string]pluginsdk.Content{
		`{"type":"text","text":"a<b"}`:                                                                                        pluginsdk.Text("a<b"),
		`{"type":"image","data":"AQI=","mimeType":"image/png"}`:                                                               pluginsdk.Image("image/png", []byte{1, 2}),
		`{"type":"audio","data":"AQI=","mimeType":"audio/wav"}`:                                                               pluginsdk.Audio("audio/wav", []byte{1, 2}),
		`{"type":"resource","resource":{"uri":"test://a","mimeType":"text/plain","text":""}}`:                                 pluginsdk.Resource("test://a", "text/plain", ""),
		`{"type":"resource","resource":{"uri":"test://a","mimeType":"a/b","blob":"AQI="}}`:                                    pluginsdk.BlobResource("test://a", "a/b", []byte{1, 2}),
		`{"type":"resource_link","uri":"test://a","name":"a","title":"A","description":"d","mimeType":"text/plain","size":3}`: pluginsdk.ResourceLink(pluginsdk.Link{URI: "test://a", Name: "a", Title: "A", Description: "d", MIMEType: "text/plain", Size: 3}),
	} {
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestErrorsReachTheHostWithEverythingTheyCarry(t *testing.T) {
	failing := func(name string, err error) pluginsdk.Tool {
		return pluginsdk.NewTool(name, "", func(context.Context, struct{}) (string, error) { return "", err }, nil)
	}
	full := pluginsdk.InvalidArgument("/a", "no %s", "b").WithDetail("detail %d", 1)
	full.Extra = map[string]any{"hint": "c"}
	c := serveTools(t,
		failing("plain", errors.New("it broke")), failing("full", full), failing("wrapped", fmt.Errorf("outer: %w", full)),
		failing("late", fmt.Errorf("asking: %w", context.DeadlineExceeded)), failing("gone", context.Canceled),
		failing("downstream", pluginsdk.Errorf(pluginsdk.DownstreamFailed, "503")), failing("bare", &pluginsdk.Error{Message: "m"}),
		failing("utf8", errors.New("caf\xe9")), failing("long", errors.New(strings.Repeat("é", 100_000))),
		pluginsdk.NewTool("panics", "", func(context.Context, struct{}) (string, error) { panic(errors.New("oh dear")) }, nil),
		pluginsdk.NewTool("index", "", func(context.Context, struct{}) (string, error) {
			return os.Args[len(os.Args)], nil
		}, nil),
	)
	for name, want := range map[string]*pb.Error{
		"plain":      {Code: "tool_failed", Blame: "plugin", Message: "it broke"},
		"full":       {Code: "invalid_arguments", Blame: "caller", Message: "no b", Detail: "detail 1", Pointer: "/a", Extra: []byte(`{"hint":"c"}`)},
		"wrapped":    {Code: "invalid_arguments", Blame: "caller", Message: "outer: no b", Detail: "detail 1", Pointer: "/a", Extra: []byte(`{"hint":"c"}`)},
		"late":       {Code: "timeout", Blame: "plugin", Message: "asking: context deadline exceeded"},
		"gone":       {Code: "cancelled", Blame: "caller", Message: "context canceled"},
		"downstream": {Code: "downstream_failed", Blame: "downstream", Message: "503", Retryable: true},
		"bare":       {Code: "tool_failed", Blame: "plugin", Message: "m"},
		"utf8":       {Code: "tool_failed", Blame: "plugin", Message: "caf\uFFFD"},
		"long":       {Code: "tool_failed", Blame: "plugin", Message: strings.Repeat("é", 32768) + "…"},
	} {
		if diff := cmp.Diff(want, invoke(t, c, name, `{}`).err, protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for tool, want := range map[string]string{"panics": "oh dear", "index": "index out of range"} {
		e := invoke(t, c, tool, `{}`).err
		if e.GetCode() != "plugin_panic" || !strings.Contains(e.GetMessage(), want) || !strings.Contains(e.GetDetail(), "call_test.go") {
			t.Errorf("%s: %v", tool, e)
		}
	}
	if e := invoke(t, c, "absent", `{}`).err; e.GetCode() != "unknown_tool" {
		t.Errorf("an absent tool: %v", e)
	}
}

func TestTheCodesAgreeWithTheTable(t *testing.T) {
	b, err := os.ReadFile("../runtime/tool/codes.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Code, Blame string
		Retryable   bool
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	known := map[pluginsdk.Code]bool{}
	for _, r := range rows {
		e := pluginsdk.Errorf(pluginsdk.Code(r.Code), "x")
		if e.Blame == "" {
			continue // not one that plugins raise
		}
		known[e.Code] = true
		if e.Blame != r.Blame || e.Retryable != r.Retryable {
			t.Errorf("%s: blame %q, retryable %v; the table says %q, %v", r.Code, e.Blame, e.Retryable, r.Blame, r.Retryable)
		}
	}
	for _, c := range []pluginsdk.Code{pluginsdk.InvalidArguments, pluginsdk.NotAvailable, pluginsdk.ToolFailed, pluginsdk.DownstreamFailed,
		pluginsdk.RateLimited, pluginsdk.ResultTooLarge, pluginsdk.Timeout, pluginsdk.Cancelled, pluginsdk.Unsupported,
		pluginsdk.NotGranted, pluginsdk.BadConfiguration} {
		if !known[c] {
			t.Errorf("the table has no %s", c)
		}
	}
}

func TestProgressAndLogLinesComeInOrderBeforeTheResult(t *testing.T) {
	type attrs struct {
		A int `json:"a"`
	}
	c := serveTools(t, pluginsdk.NewTool("t", "", func(ctx context.Context, _ struct{}) (string, error) {
		log := pluginsdk.Logger(ctx)
		pluginsdk.Progress(ctx, 0, 2, "start\xff")
		log.Info("plain <text>")
		log.With("a", 1).WithGroup("g").Warn("with attributes", "b", attrs{2})
		log.Debug("d")
		log.Error("e")
		pluginsdk.Progress(ctx, 2, 2, "")
		return "done", nil
	}, nil))
	log := func(level, data string) *pb.InvokeResponse {
		return &pb.InvokeResponse{Event: &pb.InvokeResponse_Log{Log: &pb.Log{Level: level, Logger: "test", Data: []byte(data)}}}
	}
	progress := func(done float64, note string) *pb.InvokeResponse {
		return &pb.InvokeResponse{Event: &pb.InvokeResponse_Progress{Progress: &pb.Progress{Done: done, Total: 2, Note: note}}}
	}
	want := []*pb.InvokeResponse{
		progress(0, "start\uFFFD"), log("info", `"plain <text>"`),
		log("warning", `{"msg":"with attributes","a":1,"g":{"b":{"a":2}}}`), log("debug", `"d"`), log("error", `"e"`), progress(2, ""),
		{Event: &pb.InvokeResponse_Result{Result: &pb.Result{Content: [][]byte{[]byte(pluginsdk.Text("done"))}}}},
	}
	if diff := cmp.Diff(want, invoke(t, c, "t", `{}`).events, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatAGoroutineSaysAfterTheEndIsDropped(t *testing.T) {
	var late sync.WaitGroup
	release := make(chan struct{})
	c := serveTools(t, pluginsdk.NewTool("t", "", func(ctx context.Context, _ struct{}) (string, error) {
		late.Go(func() {
			<-release
			pluginsdk.Progress(ctx, 1, 1, "late")
			pluginsdk.Logger(ctx).Info("late")
		})
		return "done", nil
	}, nil))
	if o := invoke(t, c, "t", `{}`); len(o.events) != 1 {
		t.Errorf("events = %v", o.events)
	}
	close(release)
	late.Wait()
}

func TestOutsideACallProgressAndLoggerDoNoHarm(t *testing.T) {
	pluginsdk.Progress(t.Context(), 1, 2, "")
	pluginsdk.Logger(t.Context()).Debug("nothing")
	if i := pluginsdk.CurrentCall(t.Context()); i.ID != "" {
		t.Errorf("call = %+v", i)
	}
	for name, err := range map[string]error{"ToolsChanged": pluginsdk.ToolsChanged(t.Context()), "AvailabilityChanged": pluginsdk.AvailabilityChanged(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "does not come from the SDK") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestACallKnowsItsCaller(t *testing.T) {
	got := make(chan pluginsdk.CallInfo, 1)
	dirs := make(chan [2]string, 1)
	c := serveTools(t, pluginsdk.NewTool("t", "", func(ctx context.Context, _ struct{}) (string, error) {
		got <- pluginsdk.CurrentCall(ctx)
		dirs <- [2]string{pluginsdk.ProviderName(ctx), pluginsdk.StateDir(ctx)}
		return "", nil
	}, nil))
	call(t, c, &pb.InvokeRequest{CallId: "01C", Tool: "t", Agent: "ann", Session: "s", Attended: true, Granted: []string{"store"}, Depth: 2, Traceparent: "00-x"}, nil)
	want := pluginsdk.CallInfo{ID: "01C", Tool: "t", Agent: "ann", Session: "s", Attended: true, Granted: []string{"store"}, Depth: 2, TraceParent: "00-x"}
	if diff := cmp.Diff(want, <-got); diff != "" {
		t.Error(diff)
	}
	if d := <-dirs; d[0] != "test" || d[1] == "" {
		t.Errorf("provider and directory = %v", d)
	}
}

func TestTheDeadlineAndCancellationReachTheHandler(t *testing.T) {
	started := make(chan struct{}, 1)
	c := serveTools(t, pluginsdk.NewTool("wait", "", func(ctx context.Context, _ struct{}) (string, error) {
		started <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}, nil))
	o := call(t, c, &pb.InvokeRequest{Tool: "wait", DeadlineUnixMs: uint64(time.Now().Add(20 * time.Millisecond).UnixMilli())}, nil)
	if o.err.GetCode() != "timeout" {
		t.Errorf("at the deadline: %v", o.err)
	}
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := c.Invoke(ctx, &pb.InvokeRequest{Tool: "wait"})
	if err != nil {
		t.Fatal(err)
	}
	<-started
	cancel()
	if _, err := stream.Recv(); err == nil {
		t.Error("a cancelled call went on")
	}
	if _, err := c.Drain(t.Context(), &pb.DrainRequest{}); err != nil { // returns only when the handler has
		t.Error(err)
	}
}

func TestSecretsAreReadWhereDeclaredAndNeverShown(t *testing.T) {
	const key = "HERMESD_TEST_KEY"
	opts := &pluginsdk.ToolOptions{RequiresEnv: []string{key}}
	c := serveTools(t, pluginsdk.NewTool("t", "", func(ctx context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		v, err := pluginsdk.Secrets(ctx).Get(in.Name)
		if err != nil {
			return "", err
		}
		pluginsdk.Logger(ctx).Info("using " + v)
		return "", pluginsdk.Errorf(pluginsdk.DownstreamFailed, "GET ?key=%s", v).WithDetail("again %s", v)
	}, opts))
	if e := invoke(t, c, "t", `{"name":"`+key+`"}`).err; e.GetCode() != "not_available" || !strings.Contains(e.GetMessage(), "pass_env") {
		t.Errorf("unset: %v", e)
	}
	t.Setenv(key, "s3cr3t-value")
	o := invoke(t, c, "t", `{"name":"`+key+`"}`)
	if got := string(o.events[0].GetLog().GetData()); got != `"using [redacted]"` {
		t.Errorf("log = %s", got)
	}
	if o.err.GetMessage() != "GET ?key=[redacted]" || o.err.GetDetail() != "again [redacted]" {
		t.Errorf("error = %v", o.err)
	}
	if e := invoke(t, c, "t", `{"name":"PATH"}`).err; !strings.Contains(e.GetMessage(), "does not declare PATH") {
		t.Errorf("undeclared: %v", e)
	}
}
