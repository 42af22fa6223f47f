package serve

import (
	"slices"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// watcher is one open Watch stream. Its queue is guarded by the server's mutex. It stays short whatever the host reads:
// changes are merged, and a host request waits in a goroutine of its own.
type watcher struct {
	queue []*pb.WatchResponse
	wake  chan struct{} // capacity 1: something is queued
}

func (w *watcher) push(e *pb.WatchResponse) {
	if !w.merge(e) {
		w.queue = append(w.queue, e)
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// merge lets a queued event stand for e too, if one can.
func (w *watcher) merge(e *pb.WatchResponse) bool {
	for _, q := range w.queue {
		switch queued, fresh := q.GetAvailabilityChanged(), e.GetAvailabilityChanged(); {
		case e.GetToolsChanged() != nil && q.GetToolsChanged() != nil:
			return true
		case fresh == nil || queued == nil:
		case len(queued.GetTools()) == 0 || len(fresh.GetTools()) == 0:
			queued.Tools = nil // all
			return true
		default:
			for _, name := range fresh.GetTools() {
				if !slices.Contains(queued.GetTools(), name) {
					queued.Tools = append(queued.Tools, name)
				}
			}
			return true
		}
	}
	return false
}

// publish hands an event to every watcher, to each a copy of its own, since queued ones change. The caller holds the mutex.
func (s *Server) publish(e *pb.WatchResponse) {
	for _, w := range s.watchers {
		w.push(proto.CloneOf(e))
	}
}

// Watch implements the service. A change of the tools since the host last listed them is told first, so that none falls
// between ListTools and Watch.
func (s *Server) Watch(_ *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchResponse]) error {
	w := &watcher{wake: make(chan struct{}, 1)}
	s.mu.Lock()
	s.watchers = append(s.watchers, w)
	if s.tools != nil && s.tools.generation > s.listed {
		w.push(&pb.WatchResponse{Event: &pb.WatchResponse_ToolsChanged{ToolsChanged: &pb.ToolsChanged{}}})
	}
	s.mu.Unlock()
	defer s.unwatch(w)
	// The header tells the host that from here on it misses nothing.
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	for {
		select {
		case <-w.wake:
		case <-stream.Context().Done():
			return nil
		case <-s.background.Done():
			return nil
		}
		s.mu.Lock()
		queue := w.queue
		w.queue = nil
		s.mu.Unlock()
		for _, e := range queue {
			if err := stream.Send(e); err != nil {
				return err
			}
		}
	}
}

func (s *Server) unwatch(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.watchers {
		if other == w {
			s.watchers = append(s.watchers[:i:i], s.watchers[i+1:]...)
			return
		}
	}
}
