package pluginsdk

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/hermesd/hermesd/pluginsdk/internal/serve"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// byHand answers the person who started the plugin in a terminal and returns the exit status.
func byHand(p *Plugin, s *serve.Server, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	h := &hand{plugin: p, server: s, stdin: stdin, stdout: stdout, stderr: stderr}
	err := h.run(args)
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errToolFailed): // said already
		return 1
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "%s: %v; try %q\n", p.Name, err, "help")
		return 2
	default:
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return 1
	}
}

type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

var errToolFailed = errors.New("the tool failed")

type hand struct {
	plugin         *Plugin
	server         *serve.Server
	stdin          io.Reader
	stdout, stderr io.Writer
}

const help = `%s %s: a plugin of hermesd. The daemon starts it; by hand it answers

  help                     this text
  describe                 name, version, config schema and tools, as JSON
  docs                     a Markdown page about its tools
  invoke TOOL [ARGUMENTS]  run a tool; ARGUMENTS is a JSON object, or - to read it from stdin

Options, before TOOL:
  --config JSON            the plugin's configuration, as the daemon would pass it (all but help)
  --agent NAME             who calls (invoke; default "by-hand")
`

func (h *hand) run(args []string) error {
	command := "help"
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	config := flags.String("config", "", "")
	agent := flags.String("agent", "by-hand", "")
	if err := flags.Parse(args); err != nil && !errors.Is(err, flag.ErrHelp) {
		return &usageError{err.Error()}
	}
	args = flags.Args()
	switch command {
	case "help", "-h", "-help", "--help":
		_, err := fmt.Fprintf(h.stdout, help, h.plugin.Name, h.plugin.Version)
		return err
	case "describe", "docs":
		if len(args) > 0 {
			return &usageError{command + " takes no arguments"}
		}
	case "invoke":
		if len(args) == 0 || len(args) > 2 {
			return &usageError{"invoke takes the name of a tool and its arguments"}
		}
	default:
		return &usageError{fmt.Sprintf("there is no command %q", command)}
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	client, stop := h.connect()
	defer stop()
	// describe and docs must work without a configuration; a plugin whose tools depend on it then shows the fixed ones.
	if *config != "" || command == "invoke" {
		if err := h.configure(ctx, client, *config); err != nil {
			return err
		}
	}
	switch command {
	case "describe":
		return h.describe(ctx, client)
	case "docs":
		return h.docs(ctx, client)
	default:
		return h.invoke(ctx, client, *agent, args)
	}
}

// connect serves the plugin inside this process: what is tried by hand goes the way of a real call.
func (h *hand) connect() (pb.PluginClient, func()) {
	lis := bufconn.Listen(1 << 20)
	stop := serve.InProcess(h.server, lis, 0)
	conn, err := grpc.NewClient("passthrough:plugin", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(pb.MaxMessageBytes), grpc.MaxCallSendMsgSize(pb.MaxMessageBytes)))
	if err != nil {
		panic("pluginsdk: a client with constant options cannot be made: " + err.Error())
	}
	return pb.NewPluginClient(conn), func() {
		if err := conn.Close(); err != nil {
			fmt.Fprintf(h.stderr, "%s: %v\n", h.plugin.Name, err)
		}
		stop()
	}
}

func (h *hand) configure(ctx context.Context, c pb.PluginClient, config string) error {
	r, err := c.Configure(ctx, &pb.ConfigureRequest{Config: []byte(config), Provider: h.plugin.Name})
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range r.GetDiagnostics() {
		text := strings.Join(nonEmpty(d.GetPath(), d.GetSummary(), d.GetDetail()), ": ")
		if d.GetSeverity() == pb.Diagnostic_SEVERITY_ERROR {
			errs = append(errs, errors.New("configuration: "+text))
			continue
		}
		fmt.Fprintf(h.stderr, "warning: configuration: %s\n", text)
	}
	return errors.Join(errs...)
}

func nonEmpty(parts ...string) []string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

func (h *hand) tools(ctx context.Context, c pb.PluginClient) ([]*pb.ToolDefinition, error) {
	stream, err := c.ListTools(ctx, &pb.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	var tools []*pb.ToolDefinition
	for {
		page, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return tools, nil
		}
		if err != nil {
			return nil, err
		}
		tools = append(tools, page.GetTools()...)
	}
}

func (h *hand) describe(ctx context.Context, c pb.PluginClient) error {
	d, err := c.Describe(ctx, &pb.DescribeRequest{})
	if err != nil {
		return err
	}
	tools, err := h.tools(ctx, c)
	if err != nil {
		return err
	}
	e := json.NewEncoder(h.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(describePlugin(d, tools))
}

func (h *hand) invoke(ctx context.Context, c pb.PluginClient, agent string, args []string) error {
	arguments := []byte("{}")
	if len(args) == 2 {
		arguments = []byte(args[1])
	}
	if string(arguments) == "-" {
		var err error
		if arguments, err = io.ReadAll(io.LimitReader(h.stdin, pb.MaxMessageBytes+1)); err != nil {
			return fmt.Errorf("reading the arguments: %w", err)
		}
		if len(arguments) > pb.MaxMessageBytes {
			return fmt.Errorf("the arguments have more than %d bytes, which no call may", pb.MaxMessageBytes)
		}
	}
	stream, err := c.Invoke(ctx, &pb.InvokeRequest{CallId: "by-hand", Tool: args[0], Arguments: arguments, Agent: agent})
	if err != nil {
		return err
	}
	for {
		e, err := stream.Recv()
		if err != nil {
			return err
		}
		switch v := e.GetEvent().(type) {
		case *pb.InvokeResponse_Progress:
			fmt.Fprintf(h.stderr, "progress: %g/%g %s\n", v.Progress.GetDone(), v.Progress.GetTotal(), v.Progress.GetNote())
		case *pb.InvokeResponse_Log:
			fmt.Fprintf(h.stderr, "%s: %s\n", v.Log.GetLevel(), v.Log.GetData())
		case *pb.InvokeResponse_HostRequest:
			refusal := &pb.Error{Code: string(Unsupported), Blame: "host", Message: "there is no host: the plugin was started by hand"}
			if _, err := c.Answer(ctx, &pb.AnswerRequest{Id: v.HostRequest.GetId(), Answer: &pb.AnswerRequest_Error{Error: refusal}}); err != nil {
				return err
			}
		case *pb.InvokeResponse_Result:
			return h.show(v.Result)
		case *pb.InvokeResponse_Error:
			fmt.Fprintf(h.stderr, "%s: %s\n", v.Error.GetCode(), strings.Join(nonEmpty(v.Error.GetMessage(), v.Error.GetDetail()), "\n"))
			return errToolFailed
		}
	}
}

// show prints text as it is and every other block as its JSON.
func (h *hand) show(r *pb.Result) error {
	for _, c := range r.GetContent() {
		var text struct{ Type, Text string }
		line := string(c)
		if json.Unmarshal(c, &text) == nil && text.Type == "text" {
			line = text.Text
		}
		if _, err := fmt.Fprintln(h.stdout, line); err != nil {
			return err
		}
	}
	if r.GetIsError() {
		return errToolFailed
	}
	return nil
}
