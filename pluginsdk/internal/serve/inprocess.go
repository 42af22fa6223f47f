package serve

import (
	"net"
	"sync"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"google.golang.org/grpc"
)

// InProcess serves a plugin on a listener inside this process, with the limits that a plugin process has, for tests. stop
// ends it and waits; it may be called more than once.
func InProcess(p pb.PluginServer, lis net.Listener, limit int) (stop func()) {
	srv := grpc.NewServer(ServerOptions(limit)...)
	pb.RegisterPluginServer(srv, p)
	var running sync.WaitGroup
	running.Go(func() {
		// Serve returns when Stop closes the listener; a listener that fails earlier shows as a client's error.
		if err := srv.Serve(lis); err != nil {
			return
		}
	})
	return func() {
		if s, ok := p.(*Server); ok {
			s.Close()
		}
		srv.Stop()
		running.Wait()
	}
}
