// Package serve speaks hermes.plugin.v1 on the plugin's side: the service itself, and the process around it (go-plugin's
// handshake, the guarded stdout, the lifeline to the host). It knows nothing of the types that authors write; package
// pluginsdk turns those into the values that this one serves.
package serve

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Plugin is what a [Server] serves. Describe, Tools and Logger must be set.
type Plugin struct {
	Describe *pb.DescribeResponse
	// Tools returns the definitions that are offered now. It is asked after every successful Configure and on
	// [Server.ToolsChanged].
	Tools func(context.Context) ([]*Tool, error)
	// Configure takes the operator's block; nil if the plugin wants none.
	Configure func(context.Context, *pb.ConfigureRequest) []*pb.Diagnostic
	// Intercept decides on a call, as JSON in and out; nil if the plugin is no hook.
	Intercept func(context.Context, []byte) ([]byte, error)
	// Run is work beside the calls. It starts once the plugin is configured and ends with its context; nil for none.
	Run    func(context.Context) error
	Logger *slog.Logger // the process log
}

// Tool is one definition with the code behind it.
type Tool struct {
	Definition *pb.ToolDefinition
	// Available says whether the tool's preconditions hold; the error is what agents and operators read. nil: always.
	Available func(context.Context) error
	// Invoke runs a call. Exactly one of its two results is set. A panic is contained.
	Invoke func(context.Context, *Call) (*pb.Result, *pb.Error)
}

// Server implements the Plugin service. Make one with [New]; [Server.Close] ends what it started.
type Server struct {
	pb.UnimplementedPluginServer
	plugin *Plugin
	limit  int // bytes of a message that the host takes

	background context.Context // of Run, and the end of every Watch
	stop       context.CancelFunc
	owned      sync.WaitGroup

	mu         sync.Mutex
	configured bool
	info       *pb.ConfigureRequest // nil before Configure
	tools      *toolList            // nil before the first use
	listed     uint64               // the generation that the host last listed
	draining   bool
	running    int
	idle       chan struct{} // made by Drain, closed when the last call ends
	watchers   []*watcher
	pending    map[string]chan *pb.AnswerRequest // host requests by id
	lastID     uint64
}

// New makes a server and starts nothing. limit is the size of a message in bytes that the host takes; 0 means
// [pb.MaxMessageBytes].
func New(p *Plugin, limit int) *Server {
	if limit <= 0 {
		limit = pb.MaxMessageBytes
	}
	s := &Server{plugin: p, limit: limit, pending: map[string]chan *pb.AnswerRequest{}}
	s.background, s.stop = context.WithCancel(context.WithValue(context.Background(), serverKey{}, s))
	return s
}

// Close ends Run and the streams of Watch, and waits for Run.
func (s *Server) Close() {
	s.stop()
	s.owned.Wait()
}

type (
	serverKey struct{}
	callKey   struct{}
)

// FromContext returns the server behind a context that it handed to the plugin's code, or nil.
func FromContext(ctx context.Context) *Server {
	s, _ := ctx.Value(serverKey{}).(*Server)
	return s
}

// CallFrom returns the call that ctx belongs to, or nil outside a call.
func CallFrom(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// Info is what the host said in Configure; before that it is empty.
func (s *Server) Info() *pb.ConfigureRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.info == nil {
		return &pb.ConfigureRequest{}
	}
	return s.info
}

func (s *Server) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, serverKey{}, s)
}

// Describe implements the service.
func (s *Server) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return s.plugin.Describe, nil
}

// Configure implements the service. A second call is refused: the host starts a new process for a new configuration.
func (s *Server) Configure(ctx context.Context, req *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	s.mu.Lock()
	if s.configured {
		s.mu.Unlock()
		return nil, status.Error(codes.FailedPrecondition, "the plugin is configured already; start a new process")
	}
	s.info = req
	if n := int(req.GetMaxMessageBytes()); n > 0 {
		s.limit = n
	}
	s.mu.Unlock()

	ctx = s.with(ctx)
	var diags []*pb.Diagnostic
	if s.plugin.Configure != nil {
		if err := contain(func() { diags = s.plugin.Configure(ctx, req) }); err != nil {
			diags = []*pb.Diagnostic{{Summary: "the plugin panicked while it read its configuration", Detail: err.Error()}}
		}
	}
	for _, d := range diags {
		d.Summary, d.Detail = clean(d.Summary), clean(d.Detail)
		if d.Severity == pb.Diagnostic_SEVERITY_ERROR {
			return &pb.ConfigureResponse{Diagnostics: diags}, nil
		}
	}
	if err := s.reload(ctx); err != nil {
		diags = append(diags, &pb.Diagnostic{Summary: "the plugin cannot list its tools", Detail: clean(err.Error())})
		return &pb.ConfigureResponse{Diagnostics: diags}, nil
	}
	s.mu.Lock()
	s.configured = true
	s.mu.Unlock()
	s.start()
	return &pb.ConfigureResponse{Diagnostics: diags}, nil
}

func (s *Server) start() {
	if s.plugin.Run == nil {
		return
	}
	s.owned.Go(func() {
		var err error
		if p := contain(func() { err = s.plugin.Run(s.background) }); p != nil {
			err = p
		}
		if err != nil && s.background.Err() == nil {
			s.plugin.Logger.Error("the plugin's background work ended", "error", err)
		}
	})
}

// CheckAvailability implements the service.
func (s *Server) CheckAvailability(ctx context.Context, req *pb.CheckAvailabilityRequest) (*pb.CheckAvailabilityResponse, error) {
	ctx = s.with(ctx)
	list, err := s.list(ctx)
	if err != nil {
		return nil, status.Error(codes.Internal, clean(err.Error()))
	}
	answer := map[string]*pb.Availability{}
	for _, name := range req.GetTools() {
		if list.byName[name] == nil {
			answer[name] = &pb.Availability{Reason: "the plugin has no such tool"}
		}
	}
	for _, t := range list.tools {
		if asked(req, t.Definition) {
			answer[t.Definition.GetName()] = available(ctx, t)
		}
	}
	return &pb.CheckAvailabilityResponse{Tools: answer}, nil
}

func asked(req *pb.CheckAvailabilityRequest, d *pb.ToolDefinition) bool {
	if len(req.GetTools())+len(req.GetToolsets()) == 0 {
		return true
	}
	return slices.Contains(req.GetTools(), d.GetName()) || d.GetToolset() != "" && slices.Contains(req.GetToolsets(), d.GetToolset())
}

func available(ctx context.Context, t *Tool) *pb.Availability {
	if t.Available == nil {
		return &pb.Availability{Available: true}
	}
	var err error
	if p := contain(func() { err = t.Available(ctx) }); p != nil {
		err = fmt.Errorf("the tool's availability check panicked: %w", p)
	}
	if err != nil {
		return &pb.Availability{Reason: clean(err.Error())}
	}
	return &pb.Availability{Available: true}
}

// Intercept implements the service.
func (s *Server) Intercept(ctx context.Context, req *pb.InterceptRequest) (*pb.InterceptResponse, error) {
	if s.plugin.Intercept == nil {
		return nil, status.Error(codes.Unimplemented, `the plugin is no hook: it does not have the capability "hooks"`)
	}
	var (
		decision []byte
		err      error
	)
	if p := contain(func() { decision, err = s.plugin.Intercept(s.with(ctx), req.GetPayload()) }); p != nil {
		err = p
	}
	if err != nil {
		return nil, status.Error(codes.Internal, clean(err.Error()))
	}
	return &pb.InterceptResponse{Decision: decision}, nil
}

// Capabilities are those that the plugin declares.
func (s *Server) Capabilities() []string { return s.plugin.Describe.GetCapabilities() }
