// Package admin is the operator's way into a running daemon: gRPC over a unix socket, which the command line speaks, and on
// the same socket the MCP streams of `hermesd mcp`. The socket's mode and the peer's credentials, which the kernel vouches
// for, decide who may.
package admin

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/provider"
)

const (
	maxMessage  = 64 << 20
	maxStreams  = 256
	callTimeout = 30 * time.Second // of everything that answers once
	// openTime bounds how long a connection may take to say what it is for.
	openTime = 10 * time.Second
)

// Facts are what the daemon knows about itself.
type Facts struct {
	Version    string
	Started    time.Time
	ConfigPath string
	StateDir   string
	Addresses  []Address
	// Agents are the names of all agents, in the order of the configuration.
	Agents []string
	// Blocked is why no call runs at the moment; nil where calls run.
	Blocked error
}

// Address is one place where the daemon listens.
type Address struct{ Name, Address string }

// Daemon is what the front end asks the daemon for.
type Daemon interface {
	Facts() Facts
	// Providers are all providers, in the order of the configuration.
	Providers() []provider.Provider
	// InspectProvider is everything that is known about one provider, for JSON; nil if there is nothing beside its offer.
	InspectProvider(name string) any
	// Forget clears what was learned from an agent's use of a tool and returns how many lessons that were; "" is every
	// agent, or every tool.
	Forget(ctx context.Context, agent, tool string) (int, error)
}

// Streams serves MCP over a stream; the MCP front end does.
type Streams interface {
	ServeStream(ctx context.Context, agent *disclosure.Agent, rwc io.ReadWriteCloser) error
}

// Options configure the front end. Desk, Catalog and Daemon are required.
type Options struct {
	Desk    *frontend.Desk
	Catalog *catalog.Catalog
	Daemon  Daemon
	Streams Streams // nil: MCP streams are refused
	// Enter hears from which daemons, by their ids separated by commas, an MCP stream comes, and when it ends. An error
	// refuses it. nil lets every stream in.
	Enter func(via string) (leave func(), err error)
	Dev   Dev // nil: DevAttach is refused
	// Allow decides about a peer beyond the socket's mode, for each request; nil allows everyone who can open the socket.
	Allow func(Peer) error
	// Approver decides whether a peer may answer approvals, and names it for the record. id is the approval or grant that it
	// is about, "" where it is about none. nil lets nobody.
	Approver func(p Peer, id string) (name string, err error)
	// Approvals and Audit are behind the oversight service; where one is nil, its calls are refused.
	Approvals Approvals
	Audit     Audit
	// Warnings are what an operator should know about the configuration; nil has none.
	Warnings func() []string
	// Mask hides secrets in errors, in what providers say of themselves, and in the arguments of an explained call; nil
	// hides none.
	Mask   func(string) string
	Logger *slog.Logger // nil discards
}

// Server is the admin front end.
type Server struct {
	adminpb.UnimplementedAdminServer
	adminpb.UnimplementedOversightServer
	options Options
	grpc    *grpc.Server
	base    context.Context // ends with Close, and with it every stream
	stop    context.CancelFunc
	closing sync.Once

	handed    atomic.Int32  // sessions whose streams the daemon has
	released  chan struct{} // closed when it gives them back
	releasing sync.Once
}

// New makes the front end. It starts nothing.
func New(opts *Options) (*Server, error) {
	if opts == nil || opts.Desk == nil || opts.Catalog == nil || opts.Daemon == nil {
		return nil, errors.New("admin: Options.Desk, Options.Catalog and Options.Daemon are required")
	}
	s := &Server{options: *opts, released: make(chan struct{})}
	if s.options.Logger == nil {
		s.options.Logger = slog.New(slog.DiscardHandler)
	}
	if s.options.Mask == nil {
		s.options.Mask = func(text string) string { return text }
	}
	s.base, s.stop = context.WithCancel(context.Background())
	s.grpc = grpc.NewServer(
		grpc.Creds(&peerCredentials{s.attach, s.base}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(openTime),
		grpc.WaitForHandlers(true),
		grpc.UnaryInterceptor(s.answer),
		grpc.StreamInterceptor(s.stream),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return errVersions }),
	)
	adminpb.RegisterAdminServer(s.grpc, s)
	adminpb.RegisterOversightServer(s.grpc, s)
	return s, nil
}

// Serve takes connections until Close. It closes l.
func (s *Server) Serve(l net.Listener) error {
	err := s.grpc.Serve(l)
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Release has everything that is said to clients go through their `hermesd mcp` from now on, which knows what a client need
// not be told when a daemon stops. It waits for nothing and may be called more than once.
func (s *Server) Release() { s.releasing.Do(func() { close(s.released) }) }

// Close ends every stream and call, and waits for them. It may be called more than once.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.stop() // an attached client would hold the shutdown for ever
		s.grpc.Stop()
	})
	return nil
}

// answer bounds the calls that answer once, and gives their errors a gRPC code.
func (s *Server) answer(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
	if err := s.allowed(ctx); err != nil {
		return nil, s.toStatus(err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	defer context.AfterFunc(s.base, cancel)()
	resp, err := h(ctx, req)
	return resp, s.toStatus(err)
}

func (s *Server) stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
	if err := s.allowed(ss.Context()); err != nil {
		return s.toStatus(err)
	}
	ctx, cancel := context.WithCancel(ss.Context())
	defer cancel()
	defer context.AfterFunc(s.base, cancel)()
	return s.toStatus(h(srv, &boundStream{ss, ctx}))
}

// boundStream ends with the front end, too.
type boundStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (b *boundStream) Context() context.Context { return b.ctx }
