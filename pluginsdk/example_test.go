package pluginsdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hermesd/hermesd/pluginsdk"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/wire"
)

// show configures a plugin, calls one of its tools as a daemon would, and prints what comes back. answer plays the daemon
// where the plugin asks something of it.
func show(p *pluginsdk.Plugin, tool, args string, answer func(*pb.HostRequest) *pb.AnswerRequest) {
	ctx := context.Background()
	s, err := wire.InProcess{New: func() (pb.PluginServer, error) { return pluginsdk.NewServer(p) }}.Open(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close() //nolint:errcheck // it is in this process
	diags, err := s.Configure(ctx, nil, "my-notes", "/var/lib/hermesd/plugins/my-notes")
	if err != nil || len(diags) > 0 {
		fmt.Println(diags, err)
		return
	}
	o, err := s.Call(ctx, &pb.InvokeRequest{CallId: "01J", Tool: tool, Arguments: []byte(args), Agent: "desk", Session: "s-1", Attended: true},
		func(_ context.Context, r *pb.HostRequest) *pb.AnswerRequest { return answer(r) })
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range o.Progress {
		fmt.Printf("progress %g of %g: %s\n", p.GetDone(), p.GetTotal(), p.GetNote())
	}
	for _, l := range o.Logs {
		fmt.Printf("%s %s\n", l.GetLevel(), l.GetData())
	}
	if o.Err != nil {
		fmt.Printf("%s: %s\n", o.Err.GetCode(), o.Err.GetMessage())
		return
	}
	for _, c := range o.Result.GetContent() {
		fmt.Println(string(c))
	}
}

// with wraps one tool.
func with(t pluginsdk.Tool, capabilities ...string) *pluginsdk.Plugin {
	return &pluginsdk.Plugin{Name: "example", Version: "1.0.0", Tools: []pluginsdk.Tool{t}, Capabilities: capabilities}
}

type city struct {
	City  string `json:"city" jsonschema:"name of the city"`
	Units string `json:"units,omitempty" enum:"metric,imperial" default:"metric"`
}

func ExampleServe() {
	type input struct {
		Name string `json:"name"`
	}
	greet := func(_ context.Context, in input) (string, error) { return "Hello, " + in.Name + "!", nil }
	main := func() {
		pluginsdk.Serve(&pluginsdk.Plugin{
			Name: "hello", Version: "1.0.0",
			Tools: []pluginsdk.Tool{pluginsdk.NewTool("greet", "Greet a person.", greet, nil)},
		})
	}
	_ = main
	// Output:
}

func ExampleNewTool() {
	current := func(_ context.Context, in city) (map[string]any, error) {
		return map[string]any{"city": in.City, "units": in.Units}, nil
	}
	t := pluginsdk.NewTool("weather", "Current weather for a city.", current, &pluginsdk.ToolOptions{ReadOnly: true})
	show(with(t), "weather", `{"city":"Oslo"}`, nil)
	show(with(t), "weather", `{"city":"Oslo","units":"kelvin"}`, nil)
	// Output:
	// {"type":"text","text":"{\"city\":\"Oslo\",\"units\":\"metric\"}"}
	// invalid_arguments: /units must be one of [metric imperial]
}

func ExampleNewRawTool() {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	double := func(_ context.Context, args json.RawMessage) (*pluginsdk.Result, error) {
		var in struct{ N int }
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		return pluginsdk.TextResult("%d", 2*in.N), nil
	}
	show(with(pluginsdk.NewRawTool("double", "Double a number.", schema, double, nil)), "double", `{"n":21}`, nil)
	// Output: {"type":"text","text":"42"}
}

func ExampleSchemaFor() {
	schema, err := pluginsdk.SchemaFor[city]()
	fmt.Println(string(schema), err)
	// Output: {"type":"object","properties":{"city":{"type":"string","description":"name of the city"},"units":{"type":"string","default":"metric","enum":["metric","imperial"]}},"required":["city"],"additionalProperties":false} <nil>
}

func ExampleNewConfig() {
	type settings struct {
		Root string `json:"root,omitempty" default:"/srv" jsonschema:"folder of the notes"`
	}
	var root string
	p := with(pluginsdk.NewTool("where", "Where the notes are.", func(context.Context, struct{}) (string, error) { return root, nil }, nil))
	p.Config = pluginsdk.NewConfig(func(_ context.Context, s settings) error {
		if !filepath.IsAbs(s.Root) {
			return &pluginsdk.ConfigError{Path: "/root", Summary: "must be an absolute path"}
		}
		root = s.Root
		return nil
	})
	show(p, "where", `{}`, nil)
	// Output: {"type":"text","text":"/srv"}
}

func ExampleNewServer() {
	_, err := pluginsdk.NewServer(&pluginsdk.Plugin{Name: "empty", Version: "1.0.0"})
	fmt.Println(err)
	// Output: it has neither tools nor a hook
}

func ExampleErrorf() {
	refused := errors.New("connection refused")
	t := pluginsdk.NewTool("ping", "Ping the service.", func(context.Context, struct{}) (string, error) {
		return "", pluginsdk.Errorf(pluginsdk.DownstreamFailed, "the service cannot be reached (%w); try again in a minute", refused)
	}, nil)
	show(with(t), "ping", `{}`, nil)
	// Output: downstream_failed: the service cannot be reached (connection refused); try again in a minute
}

func ExampleInvalidArgument() {
	t := pluginsdk.NewTool("weather", "Current weather for a city.", func(_ context.Context, in city) (string, error) {
		return "", pluginsdk.InvalidArgument("/city", "there is no city %q; weather_cities lists them", in.City)
	}, nil)
	show(with(t), "weather", `{"city":"Atlantis"}`, nil)
	// Output: invalid_arguments: there is no city "Atlantis"; weather_cities lists them
}

func ExampleProgress() {
	t := pluginsdk.NewTool("copy", "Copy files.", func(ctx context.Context, _ struct{}) (string, error) {
		pluginsdk.Progress(ctx, 1, 2, "a.txt")
		return "copied", nil
	}, nil)
	show(with(t), "copy", `{}`, nil)
	// Output:
	// progress 1 of 2: a.txt
	// {"type":"text","text":"copied"}
}

func ExampleLogger() {
	t := pluginsdk.NewTool("copy", "Copy files.", func(ctx context.Context, _ struct{}) (string, error) {
		pluginsdk.Logger(ctx).Warn("a file was skipped", "name", "b.txt")
		return "copied", nil
	}, nil)
	show(with(t), "copy", `{}`, nil)
	// Output:
	// warning {"msg":"a file was skipped","name":"b.txt"}
	// {"type":"text","text":"copied"}
}

func ExampleCurrentCall() {
	t := pluginsdk.NewTool("whoami", "Say who calls.", func(ctx context.Context, _ struct{}) (string, error) {
		c := pluginsdk.CurrentCall(ctx)
		return c.Agent + " in " + c.Session, nil
	}, nil)
	show(with(t), "whoami", `{}`, nil)
	// Output: {"type":"text","text":"desk in s-1"}
}

func ExampleSecrets() {
	if err := os.Setenv("EXAMPLE_KEY", "very-secret"); err != nil {
		fmt.Println(err)
	}
	defer os.Unsetenv("EXAMPLE_KEY") //nolint:errcheck // it was set above
	t := pluginsdk.NewTool("fetch", "Fetch something.", func(ctx context.Context, _ struct{}) (string, error) {
		key, err := pluginsdk.Secrets(ctx).Get("EXAMPLE_KEY")
		if err != nil {
			return "", err
		}
		return "", fmt.Errorf("GET https://example.com/?key=%s: 500", key) // the key must not reach a model
	}, &pluginsdk.ToolOptions{RequiresEnv: []string{"EXAMPLE_KEY"}})
	show(with(t), "fetch", `{}`, nil)
	// Output: tool_failed: GET https://example.com/?key=[redacted]: 500
}

func ExampleStateDir() {
	t := pluginsdk.NewTool("where", "Where files are kept.", func(ctx context.Context, _ struct{}) (string, error) {
		return pluginsdk.StateDir(ctx), nil
	}, nil)
	show(with(t), "where", `{}`, nil)
	// Output: {"type":"text","text":"/var/lib/hermesd/plugins/my-notes"}
}

func ExampleProviderName() {
	t := pluginsdk.NewTool("label", "The label of the operator's block.", func(ctx context.Context, _ struct{}) (string, error) {
		return pluginsdk.ProviderName(ctx), nil
	}, nil)
	show(with(t), "label", `{}`, nil)
	// Output: {"type":"text","text":"my-notes"}
}

func ExampleToolsChanged() {
	more := false
	p := with(pluginsdk.NewTool("unlock", "Bring another tool.", func(ctx context.Context, _ struct{}) (string, error) {
		more = true
		return "there is one more", pluginsdk.ToolsChanged(ctx)
	}, nil))
	p.ListTools = func(context.Context) ([]pluginsdk.Tool, error) {
		if !more {
			return nil, nil
		}
		return []pluginsdk.Tool{pluginsdk.NewTool("extra", "The other tool.", func(context.Context, struct{}) (string, error) { return "extra", nil }, nil)}, nil
	}
	show(p, "unlock", `{}`, nil)
	show(p, "extra", `{}`, nil)
	// Output:
	// {"type":"text","text":"there is one more"}
	// {"type":"text","text":"extra"}
}

func ExampleAvailabilityChanged() {
	t := pluginsdk.NewTool("login", "Log in.", func(ctx context.Context, _ struct{}) (string, error) {
		return "logged in", pluginsdk.AvailabilityChanged(ctx, "inbox") // the host asks again whether inbox is available
	}, nil)
	show(with(t), "login", `{}`, nil)
	// Output: {"type":"text","text":"logged in"}
}

func ExampleAskHuman() {
	t := pluginsdk.NewTool("paint", "Paint the wall.", func(ctx context.Context, _ struct{}) (string, error) {
		a, err := pluginsdk.AskHuman(ctx, pluginsdk.Question{Message: "Which colour?", Choices: []string{"red", "blue"}})
		if err != nil {
			return "", err
		}
		return "painted " + a.Choice(), nil
	}, nil)
	show(with(t, pluginsdk.CanAskHuman), "paint", `{}`, func(r *pb.HostRequest) *pb.AnswerRequest {
		fmt.Println(r.GetAskHuman().GetMessage())
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_AskHuman{
			AskHuman: &pb.AskHumanAnswer{Action: pluginsdk.Accepted, Content: []byte(`{"choice":"blue"}`)},
		}}
	})
	// Output:
	// Which colour?
	// {"type":"text","text":"painted blue"}
}

func ExampleCallTool() {
	t := pluginsdk.NewTool("report", "Report the weather.", func(ctx context.Context, _ struct{}) (*pluginsdk.Result, error) {
		return pluginsdk.CallTool(ctx, "weather", city{City: "Oslo"})
	}, nil)
	show(with(t, pluginsdk.CanCallTool), "report", `{}`, func(r *pb.HostRequest) *pb.AnswerRequest {
		fmt.Println(r.GetCallTool().GetName(), string(r.GetCallTool().GetArguments()))
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_CallTool{CallTool: &pb.Result{Content: [][]byte{[]byte(`{"type":"text","text":"rain"}`)}}}}
	})
	// Output:
	// weather {"city":"Oslo"}
	// {"type":"text","text":"rain"}
}

func ExampleDelegate() {
	t := pluginsdk.NewTool("subscribe", "Report the weather, now and every morning.", func(ctx context.Context, _ struct{}) (string, error) {
		now, later, err := pluginsdk.Delegate(ctx, "weather", city{City: "Oslo"})
		if err != nil {
			return "", err
		}
		// Kept, for example in a Store, later.Call(ctx, city{City: "Oslo"}) works without a running call.
		return string(now.Content[0]) + " and a delegation of " + later.Tool, nil
	}, nil)
	show(with(t, pluginsdk.CanCallTool), "subscribe", `{}`, func(*pb.HostRequest) *pb.AnswerRequest {
		return &pb.AnswerRequest{Delegation: "token", Answer: &pb.AnswerRequest_CallTool{CallTool: &pb.Result{Content: [][]byte{[]byte(`"rain"`)}}}}
	})
	// Output: {"type":"text","text":"\"rain\" and a delegation of weather"}
}

func ExampleSample() {
	t := pluginsdk.NewTool("summary", "Sum something up.", func(ctx context.Context, _ struct{}) (string, error) {
		answer, err := pluginsdk.Sample(ctx, map[string]any{"maxTokens": 50, "messages": []any{}})
		return string(answer), err
	}, nil)
	show(with(t, pluginsdk.CanSample), "summary", `{}`, func(r *pb.HostRequest) *pb.AnswerRequest {
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Sample{Sample: []byte(`{"model":"m"}`)}}
	})
	// Output: {"type":"text","text":"{\"model\":\"m\"}"}
}

func ExampleStore() {
	t := pluginsdk.NewTool("remember", "Keep a word.", func(ctx context.Context, in struct {
		Word string `json:"word"`
	}) (string, error) {
		var store pluginsdk.Store
		key := "word/" + pluginsdk.CurrentCall(ctx).Agent // keys are not scoped to agents by themselves
		return "kept", store.Put(ctx, key, []byte(in.Word))
	}, nil)
	show(with(t, pluginsdk.CanStore), "remember", `{"word":"sesame"}`, func(r *pb.HostRequest) *pb.AnswerRequest {
		fmt.Printf("put %s = %s\n", r.GetStore().GetKey(), r.GetStore().GetValue())
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Store{Store: &pb.StoreAnswer{}}}
	})
	// Output:
	// put word/desk = sesame
	// {"type":"text","text":"kept"}
}

func ExampleText() {
	fmt.Println(string(pluginsdk.Text("2 < 3")))
	// Output: {"type":"text","text":"2 < 3"}
}

func ExampleImage() {
	fmt.Println(string(pluginsdk.Image("image/png", []byte{1, 2, 3})))
	// Output: {"type":"image","data":"AQID","mimeType":"image/png"}
}

func ExampleAudio() {
	fmt.Println(string(pluginsdk.Audio("audio/wav", []byte{1, 2, 3})))
	// Output: {"type":"audio","data":"AQID","mimeType":"audio/wav"}
}

func ExampleResource() {
	fmt.Println(string(pluginsdk.Resource("file:///notes.md", "text/markdown", "# Notes")))
	// Output: {"type":"resource","resource":{"uri":"file:///notes.md","mimeType":"text/markdown","text":"# Notes"}}
}

func ExampleBlobResource() {
	fmt.Println(string(pluginsdk.BlobResource("file:///a.bin", "application/octet-stream", []byte{1, 2, 3})))
	// Output: {"type":"resource","resource":{"uri":"file:///a.bin","mimeType":"application/octet-stream","blob":"AQID"}}
}

func ExampleResourceLink() {
	fmt.Println(string(pluginsdk.ResourceLink(pluginsdk.Link{URI: "https://example.com/report", Name: "report"})))
	// Output: {"type":"resource_link","uri":"https://example.com/report","name":"report"}
}

func ExampleTextResult() {
	r := pluginsdk.TextResult("%d tests failed", 2)
	r.IsError = true
	fmt.Println(string(r.Content[0]), r.IsError)
	// Output: {"type":"text","text":"2 tests failed"} true
}

func ExamplePlugin_hook() {
	p := &pluginsdk.Plugin{Name: "guard", Version: "1.0.0", Hook: func(_ context.Context, e *pluginsdk.HookEvent) (*pluginsdk.Decision, error) {
		if strings.Contains(string(e.Args), "production") {
			return &pluginsdk.Decision{Action: pluginsdk.Block, Message: "not in production"}, nil
		}
		return nil, nil // allowed
	}}
	d, err := p.Hook(context.Background(), &pluginsdk.HookEvent{Event: "pre_call", Tool: "deploy", Args: json.RawMessage(`{"host":"production"}`)})
	fmt.Println(d.Action, d.Message, err)
	// Output: block not in production <nil>
}
