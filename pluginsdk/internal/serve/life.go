package serve

import (
	"context"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"google.golang.org/grpc/status"
)

// begin counts a call in, unless the plugin is draining.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.running++
	return true
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.running == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// Drain implements the service. The plugin stays drained when the caller gives up waiting.
func (s *Server) Drain(ctx context.Context, _ *pb.DrainRequest) (*pb.DrainResponse, error) {
	s.mu.Lock()
	s.draining = true
	if s.running > 0 && s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	return &pb.DrainResponse{}, nil
}

// Health implements the service. gRPC gives every RPC a goroutine of its own, and nothing is held for longer than a look,
// so that calls cannot delay it.
func (s *Server) Health(context.Context, *pb.HealthRequest) (*pb.HealthResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &pb.HealthResponse{RunningCalls: uint32(s.running), Draining: s.draining}, nil
}
