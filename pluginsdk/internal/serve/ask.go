package serve

import (
	"context"
	"errors"
	"strconv"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// ErrNoHost means that a host request was made where no host listens: outside a call while nobody watches.
var ErrNoHost = errors.New("no host listens outside a call")

// Ask sends a host request and waits for its answer: on the call's own stream if ctx belongs to a call, else on Watch.
func (s *Server) Ask(ctx context.Context, req *pb.HostRequest) (*pb.AnswerRequest, error) {
	answer := make(chan *pb.AnswerRequest, 1)
	s.mu.Lock()
	s.lastID++
	req.Id = strconv.FormatUint(s.lastID, 10)
	s.pending[req.Id] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.pending, req.Id)
		s.mu.Unlock()
	}()

	ended := s.background.Done()
	if call := CallFrom(ctx); call != nil {
		call.send(&pb.InvokeResponse{Event: &pb.InvokeResponse_HostRequest{HostRequest: req}})
		ended = call.ctx.Done()
	} else if !s.askOutside(req) {
		return nil, ErrNoHost
	}
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-ended:
		return nil, context.Canceled
	}
}

// askOutside hands a request to the newest watcher.
func (s *Server) askOutside(req *pb.HostRequest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watchers) == 0 {
		return false
	}
	s.watchers[len(s.watchers)-1].push(&pb.WatchResponse{Event: &pb.WatchResponse_HostRequest{HostRequest: req}})
	return true
}

// Answer implements the service. An answer that nobody waits for (the call has ended) is dropped.
func (s *Server) Answer(_ context.Context, req *pb.AnswerRequest) (*pb.AnswerResponse, error) {
	s.mu.Lock()
	answer := s.pending[req.GetId()]
	delete(s.pending, req.GetId())
	s.mu.Unlock()
	if answer != nil {
		answer <- req
	}
	return &pb.AnswerResponse{}, nil
}
