package pluginsdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/pluginsdk"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/testing/protocmp"
)

// everything makes each host request once and says what came back.
func everything(ctx context.Context) (string, error) {
	form, err := pluginsdk.AskHuman(ctx, pluginsdk.Question{Message: "m", Schema: json.RawMessage(`{"type":"object"}`)})
	if err != nil {
		return "", fmt.Errorf("form: %w", err)
	}
	choice, err := pluginsdk.AskHuman(ctx, pluginsdk.Question{Message: "c", Choices: []string{"a", "b"}})
	if err != nil {
		return "", fmt.Errorf("choice: %w", err)
	}
	called, err := pluginsdk.CallTool(ctx, "other", map[string]int{"x": 1})
	if err != nil {
		return "", fmt.Errorf("call: %w", err)
	}
	sampled, err := pluginsdk.Sample(ctx, map[string]int{"maxTokens": 1})
	if err != nil {
		return "", fmt.Errorf("sample: %w", err)
	}
	var store pluginsdk.Store
	value, found, err := store.Get(ctx, "k")
	if err != nil {
		return "", fmt.Errorf("get: %w", err)
	}
	if err := store.Put(ctx, "k", []byte("v")); err != nil {
		return "", fmt.Errorf("put: %w", err)
	}
	if err := store.Delete(ctx, "k"); err != nil {
		return "", fmt.Errorf("delete: %w", err)
	}
	keys, err := store.List(ctx, "k")
	if err != nil {
		return "", fmt.Errorf("list: %w", err)
	}
	return fmt.Sprintf("%s %s | %q | %s %v | %s | %s %v %v", form.Action, form.Content, choice.Choice(), called.Content, called.IsError, sampled, value, found, keys), nil
}

// host answers host requests as a daemon would.
func host(r *pb.HostRequest) *pb.AnswerRequest {
	switch q := r.GetRequest().(type) {
	case *pb.HostRequest_AskHuman:
		content := []byte(`{"name":"Ann"}`)
		if len(q.AskHuman.GetChoices()) > 0 {
			content = fmt.Appendf(nil, `{"choice":%q}`, q.AskHuman.GetChoices()[1])
		}
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_AskHuman{AskHuman: &pb.AskHumanAnswer{Action: "accept", Content: content}}}
	case *pb.HostRequest_CallTool:
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_CallTool{CallTool: &pb.Result{Content: [][]byte{q.CallTool.GetArguments()}, IsError: true}}}
	case *pb.HostRequest_Sample:
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Sample{Sample: q.Sample.GetParams()}}
	default:
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Store{Store: &pb.StoreAnswer{Found: true, Value: []byte("stored"), Keys: []string{"k1", "k2"}}}}
	}
}

const everythingAnswered = `accept {"name":"Ann"} | "b" | [{"x":1}] true | {"maxTokens":1} | stored true [k1 k2]`

var allCapabilities = []string{pluginsdk.CanAskHuman, pluginsdk.CanCallTool, pluginsdk.CanSample, pluginsdk.CanStore}

func asking(capabilities ...string) *pluginsdk.Plugin {
	return &pluginsdk.Plugin{Name: "asking", Version: "1", Capabilities: capabilities, Tools: []pluginsdk.Tool{
		pluginsdk.NewTool("ask", "", func(ctx context.Context, _ struct{}) (string, error) { return everything(ctx) }, nil),
	}}
}

func TestEveryHostRequestOfACallIsAnswered(t *testing.T) {
	c := inProcess(t, asking(allCapabilities...), 0)
	configure(t, c, "")
	o := call(t, c, &pb.InvokeRequest{Tool: "ask"}, host)
	if o.text() != everythingAnswered {
		t.Errorf("result = %q, error = %v", o.text(), o.err)
	}
	ids := map[string]bool{}
	for _, e := range o.events {
		if r := e.GetHostRequest(); r != nil {
			ids[r.GetId()] = true
		}
	}
	if len(ids) != 8 {
		t.Errorf("%d different ids for 8 requests", len(ids))
	}
}

func TestAHostRequestThatIsRefusedIsAnErrorOfTheCall(t *testing.T) {
	c := inProcess(t, asking(allCapabilities...), 0)
	configure(t, c, "")
	refuse := func(*pb.HostRequest) *pb.AnswerRequest {
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Error{Error: &pb.Error{Code: "not_granted", Message: "no grant", Blame: "host", Extra: []byte(`{"k":"v"}`)}}}
	}
	o := call(t, c, &pb.InvokeRequest{Tool: "ask"}, refuse)
	want := &pb.Error{Code: "not_granted", Message: "form: no grant", Blame: "host", Extra: []byte(`{"k":"v"}`)}
	if diff := cmp.Diff(want, o.err, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	o = call(t, c, &pb.InvokeRequest{Tool: "ask"}, func(*pb.HostRequest) *pb.AnswerRequest { return &pb.AnswerRequest{} })
	if !strings.Contains(o.err.GetMessage(), "answered something else") {
		t.Errorf("an empty answer: %v", o.err)
	}
}

func TestWhatIsNotDeclaredIsNotAsked(t *testing.T) {
	c := inProcess(t, asking(), 0)
	configure(t, c, "")
	o := call(t, c, &pb.InvokeRequest{Tool: "ask"}, nil) // a request would be answered by a nil function
	if o.err.GetCode() != "not_granted" || !strings.Contains(o.err.GetMessage(), "Plugin.Capabilities") {
		t.Errorf("error = %v", o.err)
	}
}

func TestAnAnswerThatNobodyWaitsForIsDropped(t *testing.T) {
	c := inProcess(t, asking(allCapabilities...), 0)
	for _, id := range []string{"", "1", "99"} {
		if _, err := c.Answer(t.Context(), &pb.AnswerRequest{Id: id}); err != nil {
			t.Error(err)
		}
	}
}

func TestACallThatEndsStopsWaitingForItsAnswer(t *testing.T) {
	c := inProcess(t, asking(allCapabilities...), 0)
	configure(t, c, "")
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := c.Invoke(ctx, &pb.InvokeRequest{Tool: "ask"})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := stream.Recv(); err != nil || e.GetHostRequest() == nil {
		t.Fatalf("event = %v, %v", e, err)
	}
	cancel()
	if _, err := c.Drain(t.Context(), &pb.DrainRequest{}); err != nil {
		t.Error(err)
	}
}

// watch opens the stream; its header comes once the plugin misses nothing for it.
func watch(t *testing.T, c pb.PluginClient) grpc.ServerStreamingClient[pb.WatchResponse] {
	t.Helper()
	stream, err := c.Watch(t.Context(), &pb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	return stream
}

func receive(t *testing.T, stream grpc.ServerStreamingClient[pb.WatchResponse]) *pb.WatchResponse {
	t.Helper()
	e, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestBackgroundWorkAsksTheHostThroughWatch(t *testing.T) {
	asked, watched := make(chan struct{}), make(chan struct{})
	result := make(chan string, 1)
	p := asking(allCapabilities...)
	p.Run = func(ctx context.Context) error {
		// Before anybody watches there is nobody to ask.
		var refused *pluginsdk.Error
		if _, err := pluginsdk.AskHuman(ctx, pluginsdk.Question{Message: "?"}); !errors.As(err, &refused) || refused.Code != pluginsdk.Unsupported {
			result <- fmt.Sprintf("without a host: %v", err)
			return nil
		}
		close(asked)
		<-watched
		text, err := everything(ctx)
		if err != nil {
			text = err.Error()
		}
		result <- text
		<-ctx.Done()
		return nil
	}
	c := inProcess(t, p, 0)
	configure(t, c, "")
	<-asked
	stream := watch(t, c)
	close(watched)
	for range 8 {
		e := receive(t, stream)
		a := host(e.GetHostRequest())
		a.Id = e.GetHostRequest().GetId()
		if _, err := c.Answer(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-result; got != everythingAnswered {
		t.Errorf("result = %q", got)
	}
}

func TestChangedToolsAreToldOnce(t *testing.T) {
	names := []string{"one"}
	p := &pluginsdk.Plugin{Name: "dynamic", Version: "1"}
	p.ListTools = func(context.Context) ([]pluginsdk.Tool, error) {
		var tools []pluginsdk.Tool
		for _, n := range names {
			tools = append(tools, pluginsdk.NewTool(n, "", nothing, nil))
		}
		return tools, nil
	}
	p.Tools = []pluginsdk.Tool{pluginsdk.NewTool("add", "", func(ctx context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		if in.Name != "" {
			names = append(names, in.Name)
		}
		return "", pluginsdk.ToolsChanged(ctx)
	}, nil)}
	c := inProcess(t, p, 0)
	configure(t, c, "")
	list := func() []string {
		tools, _, _ := listTools(t, c)
		var got []string
		for _, d := range tools {
			got = append(got, d.GetName())
		}
		slices.Sort(got)
		return got
	}
	_, _, before := listTools(t, c)
	if diff := cmp.Diff([]string{"add", "one"}, list()); diff != "" {
		t.Fatal(diff)
	}
	// A change between listing and watching is told when the stream opens.
	if o := invoke(t, c, "add", `{"name":"two"}`); o.err != nil {
		t.Fatal(o.err)
	}
	stream := watch(t, c)
	if receive(t, stream).GetToolsChanged() == nil {
		t.Fatal("no change was told")
	}
	if diff := cmp.Diff([]string{"add", "one", "two"}, list()); diff != "" {
		t.Error(diff)
	}
	_, _, after := listTools(t, c)
	if before == after {
		t.Error("the hash is the same")
	}
	if o := invoke(t, c, "two", `{}`); o.err != nil {
		t.Errorf("the new tool: %v", o.err)
	}
	// Nothing is told when nothing changed; a faulty list is an error and leaves the old one.
	if o := invoke(t, c, "add", `{"name":""}`); o.err != nil {
		t.Error(o.err)
	}
	if o := invoke(t, c, "add", `{"name":"two"}`); !strings.Contains(o.err.GetMessage(), `two tools are named "two"`) {
		t.Errorf("a name twice: %v", o.err)
	}
	if diff := cmp.Diff([]string{"add", "one", "two"}, list()); diff != "" {
		t.Error(diff)
	}
	names = []string{"three"}
	if o := invoke(t, c, "add", `{"name":""}`); o.err != nil {
		t.Error(o.err)
	}
	if receive(t, stream).GetToolsChanged() == nil {
		t.Error("the next event is another one")
	}
}
