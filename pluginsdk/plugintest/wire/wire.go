// Package wire is a bare host: it opens one instance of a plugin and speaks hermes.plugin.v1 with it, without the
// supervision, the schemas and the policy of the daemon. Tests and `hermesd plugin check` stand on it, because they want to
// see what the plugin really says.
//
// [Program] starts a plugin in a process of its own, by the handshake that docs/plugin-authors/contract.md spells out;
// [InProcess] serves one written with pluginsdk in this process. Both give a [Session].
package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// maxTools bounds what one plugin may list here.
const maxTools = 100_000

// Target is something that instances of a plugin can be opened of.
type Target interface {
	// Open makes a fresh instance. The caller closes the session.
	Open(ctx context.Context, opts *OpenOptions) (*Session, error)
}

// OpenOptions say how an instance is opened. nil means the defaults.
type OpenOptions struct {
	// MaxMessageBytes bounds one message in either direction; 0 is 16 MiB.
	MaxMessageBytes int
}

func (o *OpenOptions) limit() int {
	if o == nil || o.MaxMessageBytes <= 0 {
		return pb.MaxMessageBytes
	}
	return o.MaxMessageBytes
}

// Session is one open instance.
type Session struct {
	pb.PluginClient
	// Process is the plugin's process; nil for [InProcess].
	Process *Process
	limit   int
	conn    *grpc.ClientConn
	end     func() error
	label   string // of its goroutines; "" for a process
}

// Close ends the instance and waits for its end. It may be called more than once.
func (s *Session) Close() error {
	if s.end == nil {
		return nil
	}
	end := s.end
	s.end = nil
	return errors.Join(s.conn.Close(), end())
}

// Configure hands a configuration over ("" is the empty object) and returns the diagnostics.
func (s *Session) Configure(ctx context.Context, config []byte, provider, stateDir string) ([]*pb.Diagnostic, error) {
	if len(config) == 0 {
		config = []byte("{}")
	}
	r, err := s.PluginClient.Configure(ctx, &pb.ConfigureRequest{
		Config: config, Provider: provider, StateDir: stateDir, MaxMessageBytes: uint32(s.limit),
	})
	return r.GetDiagnostics(), err
}

// Tools lists every definition and the hash that the list ends with. A hash before the last page is an error.
func (s *Session) Tools(ctx context.Context) (tools []*pb.ToolDefinition, hash string, err error) {
	stream, err := s.ListTools(ctx, &pb.ListToolsRequest{})
	if err != nil {
		return nil, "", err
	}
	for {
		page, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return tools, hash, nil
		case err != nil:
			return nil, "", err
		case hash != "":
			return nil, "", errors.New("a page follows the one with the hash, which must be the last")
		}
		tools, hash = append(tools, page.GetTools()...), page.GetHash()
		if len(tools) > maxTools {
			return nil, "", fmt.Errorf("it lists more than %d tools", maxTools)
		}
	}
}

// idle waits until the plugin says that no call runs any more.
func (s *Session) idle(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		h, err := s.Health(ctx, &pb.HealthRequest{})
		if err != nil {
			return err
		}
		if h.GetRunningCalls() == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d calls still run: %w", h.GetRunningCalls(), ctx.Err())
		}
	}
}

// Idle waits at most for the time given until the plugin says that no call runs any more.
func (s *Session) Idle(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return s.idle(ctx)
}
