package serve

import (
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// maxQueuedLogs bounds what a host that does not read can make the plugin keep; later lines are dropped.
const maxQueuedLogs = 1024

// watcher is one open Watch stream. Its queue is guarded by the server's mutex.
type watcher struct {
	queue []*pb.WatchResponse
	logs  int
	wake  chan struct{} // capacity 1: something is queued
}

func (w *watcher) push(e *pb.WatchResponse) {
	switch e.GetEvent().(type) {
	case *pb.WatchResponse_Log:
		if w.logs == maxQueuedLogs {
			return
		}
		w.logs++
	case *pb.WatchResponse_ToolsChanged:
		for _, q := range w.queue {
			if q.GetToolsChanged() != nil {
				return // one is as good as many
			}
		}
	}
	w.queue = append(w.queue, e)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// publish hands an event to every watcher. The caller holds the mutex.
func (s *Server) publish(e *pb.WatchResponse) {
	for _, w := range s.watchers {
		w.push(e)
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
		w.queue, w.logs = nil, 0
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

// Log sends a line outside a call and reports whether anybody watches.
func (s *Server) Log(level, logger string, data []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish(&pb.WatchResponse{Event: &pb.WatchResponse_Log{Log: logLine(level, logger, data)}})
	return len(s.watchers) > 0
}
