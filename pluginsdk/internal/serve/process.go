package serve

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"google.golang.org/grpc"
)

// Hosted reports whether this process was started by a host.
func Hosted() bool { return os.Getenv(pb.MagicCookieKey) == pb.MagicCookieValue }

// MessageLimit is the message size that the environment asks for; 0 if it says nothing that makes sense.
func MessageLimit() int {
	n, err := strconv.Atoi(os.Getenv(pb.MaxMessageEnv))
	if err != nil || n < 64<<10 {
		return 0
	}
	return n
}

// window is how many bytes of a request may be on their way to the plugin, which is on the daemon's machine.
const window = 1 << 20

// workers is how many goroutines of calls are kept.
const workers = 8

// ServerOptions are the gRPC limits of a plugin, for messages of limit bytes (0: [pb.MaxMessageBytes]).
func ServerOptions(limit int) []grpc.ServerOption {
	if limit <= 0 {
		limit = pb.MaxMessageBytes
	}
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(limit), grpc.MaxSendMsgSize(limit),
		// Without a size, gRPC would send a ping for each request to find a better one.
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
		// A call has a stack that has grown already: to grow a new one costs a small call a tenth of its time. Calls beyond
		// these get goroutines of their own.
		grpc.NumStreamWorkers(workers),
	}
}

// Process serves s over go-plugin until the host ends it. It owns the process: signals, stdout and the lifeline.
func Process(s *Server, logger *slog.Logger) {
	watchLifeline(logger)
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		<-terminated
		s.Close()
		os.Exit(0)
	}()

	guard := &stdoutGuard{stderr: os.Stderr}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  pb.ProtocolVersion,
			MagicCookieKey:   pb.MagicCookieKey,
			MagicCookieValue: pb.MagicCookieValue,
		},
		Plugins: plugin.PluginSet{pb.PluginName: &glue{server: s}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			opts = append(opts, ServerOptions(MessageLimit())...)
			return grpc.NewServer(append(opts, guard.options()...)...)
		},
		Logger: hclog.New(&hclog.LoggerOptions{Output: os.Stderr, JSONFormat: true, Level: hclog.Warn}),
	})
	s.Close()
}

// glue registers the service with go-plugin.
type glue struct {
	plugin.NetRPCUnsupportedPlugin
	server *Server
}

func (g *glue) GRPCServer(_ *plugin.GRPCBroker, r *grpc.Server) error {
	pb.RegisterPluginServer(r, g.server)
	return nil
}

func (g *glue) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return pb.NewPluginClient(c), nil
}

// stdoutGuard points stdout at stderr once the handshake line is out, so that nothing that a tool prints can reach the
// protocol. go-plugin itself puts pipes in the place of both, which fill up when the host does not read them. It does so
// before it serves, hence the first RPC is the moment to undo it.
type stdoutGuard struct {
	stderr *os.File
	once   sync.Once
}

func (g *stdoutGuard) close() {
	g.once.Do(func() {
		os.Stdout, os.Stderr = g.stderr, g.stderr
		redirectStdout(g.stderr)
	})
}

func (g *stdoutGuard) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			g.close()
			return next(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			g.close()
			return next(srv, stream)
		}),
	}
}

// watchLifeline ends the process, and the group that it leads, when the host has died: the descriptor named in the
// environment then reaches its end.
func watchLifeline(logger *slog.Logger) {
	text := os.Getenv(pb.LifelineEnv)
	if text == "" {
		return
	}
	fd, err := strconv.Atoi(text)
	if err != nil || fd < 3 {
		logger.Warn("the lifeline is not a descriptor; the plugin will not notice the host's death", "value", text)
		return
	}
	closeOnExec(fd)
	lifeline := os.NewFile(uintptr(fd), "lifeline")
	go func() {
		buf := make([]byte, 16)
		for {
			if _, err := lifeline.Read(buf); err != nil {
				break
			}
		}
		endGroup()
		os.Exit(1)
	}()
}
