package admin

import (
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/tool"
)

// viaKey is the metadata that tells which daemons an MCP stream comes from.
const viaKey = "hermesd-via"

// Attach implements hermes.admin.v1.
func (s *Server) Attach(stream grpc.BidiStreamingServer[adminpb.AttachFrame, adminpb.AttachFrame]) error {
	if s.options.Streams == nil {
		return tool.Errorf(tool.Unsupported, "this daemon serves no MCP streams")
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	agent, err := s.agent(first.GetAgent())
	if err != nil {
		return err
	}
	if s.options.Enter != nil {
		leave, err := s.options.Enter(strings.Join(metadata.ValueFromIncomingContext(stream.Context(), viaKey), ","))
		if err != nil {
			return err
		}
		defer leave()
	}
	s.options.Logger.Debug("a client attached", "agent", agent.Name, "client", first.GetClient())
	return s.options.Streams.ServeStream(stream.Context(), agent, &attached{frameWriter{stream}, frameReader{stream: stream}})
}

// attached is the client's bytes as a stream. Reading and writing end with the RPC, at the latest.
type attached struct {
	frameWriter
	frameReader
}

// Close implements [io.Closer]. The stream ends when Attach returns.
func (a *attached) Close() error { return nil }
