package pluginsdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/hermesd/hermesd/pluginsdk"
	"github.com/hermesd/hermesd/pluginsdk/internal/serve"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// echoPlugin is what the process tests run: one tool that echoes, one that prints, one that panics.
func echoPlugin() *pluginsdk.Plugin {
	type text struct {
		Text string `json:"text"`
	}
	type size struct {
		Bytes int `json:"bytes"`
	}
	return &pluginsdk.Plugin{Name: "echo", Version: "1.0.0", Tools: []pluginsdk.Tool{
		pluginsdk.NewTool("echo", "Echo.", func(_ context.Context, in text) (text, error) { return in, nil }, nil),
		pluginsdk.NewTool("print", "Print.", func(_ context.Context, in size) (string, error) {
			line := make([]byte, in.Bytes)
			for i := range line {
				line[i] = 'o'
			}
			fmt.Println(string(line))
			child := exec.Command("/bin/echo", "from a child")
			child.Stdout = os.NewFile(1, "stdout")
			return "printed", child.Run()
		}, nil),
		pluginsdk.NewTool("panic", "Panic.", func(context.Context, struct{}) (string, error) { panic("oh dear") }, nil),
	}}
}

// handPlugin is what the tests start by hand.
func handPlugin() *pluginsdk.Plugin {
	type config struct {
		Greeting string `json:"greeting,omitempty" default:"Hello"`
	}
	type who struct {
		Name  string `json:"name" jsonschema:"who"`
		Style string `json:"style,omitempty" jsonschema:"formal | friendly." enum:"a,b"`
	}
	var greeting string
	return &pluginsdk.Plugin{
		Name: "hand", Version: "1.0.0", Description: "For tests.", Capabilities: []string{pluginsdk.CanAskHuman},
		Config: pluginsdk.NewConfig(func(_ context.Context, c config) error { greeting = c.Greeting; return nil }),
		Tools: []pluginsdk.Tool{
			pluginsdk.NewTool("greet", "Greet somebody.", func(ctx context.Context, in who) (string, error) {
				pluginsdk.Logger(ctx).Info("greeting")
				pluginsdk.Progress(ctx, 1, 2, "half")
				return greeting + " " + in.Name, nil
			}, &pluginsdk.ToolOptions{Toolset: "people", ReadOnly: true, OpenWorld: new(false), Examples: []any{who{Name: "Ada"}}}),
			pluginsdk.NewTool("whoami", "Who calls.", func(ctx context.Context, _ struct{}) (string, error) {
				return pluginsdk.CurrentCall(ctx).Agent, nil
			}, nil),
			pluginsdk.NewTool("picture", "A picture.", func(context.Context, struct{}) ([]pluginsdk.Content, error) {
				return []pluginsdk.Content{pluginsdk.Image("image/png", []byte{1})}, nil
			}, nil),
			pluginsdk.NewTool("fail", "Fails.", func(context.Context, struct{}) (*pluginsdk.Result, error) {
				return &pluginsdk.Result{Content: []pluginsdk.Content{pluginsdk.Text("no luck")}, IsError: true}, nil
			}, nil),
			pluginsdk.NewTool("ask", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
				a, err := pluginsdk.AskHuman(ctx, pluginsdk.Question{Message: "well?"})
				return a.Action, err
			}, nil),
		},
	}
}

func servePlugin(kind string) {
	switch kind {
	case "echo":
		pluginsdk.Serve(echoPlugin())
	case "running":
		pluginsdk.Serve(&pluginsdk.Plugin{Name: "running", Version: "1",
			Run: func(ctx context.Context) error {
				<-ctx.Done()
				pluginsdk.Logger(ctx).Info("finished")
				return nil
			},
			Tools: []pluginsdk.Tool{pluginsdk.NewTool("pid", "", func(context.Context, struct{}) (int, error) { return os.Getpid(), nil }, nil)},
		})
	case "hand":
		pluginsdk.Serve(handPlugin())
	case "broken":
		pluginsdk.Serve(&pluginsdk.Plugin{Name: "broken", Version: "1", Tools: []pluginsdk.Tool{
			pluginsdk.NewRawTool("crooked", "", json.RawMessage(`{"type":"object","properties":{"a":{"type":"strng"}}}`),
				func(context.Context, json.RawMessage) (*pluginsdk.Result, error) { return nil, nil }, nil),
		}})
	}
}

// inProcess serves a plugin without a process. limit is the message limit; 0 is the default.
func inProcess(t *testing.T, p *pluginsdk.Plugin, limit int) pb.PluginClient {
	t.Helper()
	s, err := pluginsdk.NewServer(p)
	if err != nil {
		t.Fatal(err)
	}
	lis := bufconn.Listen(1 << 20)
	stop := serve.InProcess(s, lis, limit)
	if limit == 0 {
		limit = pb.MaxMessageBytes
	}
	conn, err := grpc.NewClient("passthrough:plugin", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(limit), grpc.MaxCallSendMsgSize(limit)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		stop()
	})
	return pb.NewPluginClient(conn)
}

func configure(t *testing.T, c pb.PluginClient, config string) []*pb.Diagnostic {
	t.Helper()
	r, err := c.Configure(t.Context(), &pb.ConfigureRequest{Config: []byte(config), Provider: "test", StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return r.GetDiagnostics()
}

// outcome is everything that came back from a call.
type outcome struct {
	events     []*pb.InvokeResponse
	content    [][]byte // the result's and the chunked blocks, joined
	structured []byte
	chunks     int
	result     *pb.Result
	err        *pb.Error
}

func (o outcome) text() string {
	out := ""
	for _, c := range o.content {
		var t struct{ Text string }
		if err := json.Unmarshal(c, &t); err == nil {
			out += t.Text
		}
	}
	return out
}

func invoke(t *testing.T, c pb.PluginClient, tool, args string) outcome {
	t.Helper()
	return call(t, c, &pb.InvokeRequest{CallId: "c1", Tool: tool, Arguments: []byte(args), Agent: "ann", Session: "s1"}, nil)
}

// call invokes and collects. answer, if set, answers host requests.
func call(t *testing.T, c pb.PluginClient, req *pb.InvokeRequest, answer func(*pb.HostRequest) *pb.AnswerRequest) outcome {
	t.Helper()
	stream, err := c.Invoke(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var (
		o     outcome
		piece []byte
	)
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if (o.result == nil) == (o.err == nil) {
				t.Fatalf("a call ends with exactly one result or error: %v", o.events)
			}
			if o.result != nil {
				o.content = append(o.content, o.result.GetContent()...)
				if o.structured == nil {
					o.structured = o.result.GetStructured()
				}
			}
			return o
		}
		if err != nil {
			t.Fatal(err)
		}
		if o.result != nil || o.err != nil {
			t.Fatalf("something came after the end: %v", e)
		}
		o.events = append(o.events, e)
		switch v := e.GetEvent().(type) {
		case *pb.InvokeResponse_Result:
			o.result = v.Result
		case *pb.InvokeResponse_Error:
			o.err = v.Error
		case *pb.InvokeResponse_Chunk:
			o.chunks++
			piece = append(piece, v.Chunk.GetData()...)
			if v.Chunk.GetLast() {
				if v.Chunk.GetPart() == pb.Chunk_PART_STRUCTURED {
					o.structured = piece
				} else {
					o.content = append(o.content, piece)
				}
				piece = nil
			}
		case *pb.InvokeResponse_HostRequest:
			a := answer(v.HostRequest)
			a.Id = v.HostRequest.GetId()
			if _, err := c.Answer(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func listTools(t *testing.T, c pb.PluginClient) (tools []*pb.ToolDefinition, pages int, hash string) {
	t.Helper()
	stream, err := c.ListTools(t.Context(), &pb.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		page, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return tools, pages, hash
		}
		if err != nil {
			t.Fatal(err)
		}
		if hash != "" {
			t.Fatal("a page came after the hash")
		}
		pages++
		tools = append(tools, page.GetTools()...)
		hash = page.GetHash()
	}
}
