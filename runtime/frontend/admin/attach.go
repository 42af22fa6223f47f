package admin

import (
	"errors"
	"io"
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
	reader, writer := io.Pipe()
	go func() { // ends with the stream, which ends at the latest when this method returns
		for {
			frame, err := stream.Recv()
			if err == nil {
				_, err = writer.Write(frame.GetData())
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = nil // the client has said everything
				}
				writer.CloseWithError(err)
				return
			}
		}
	}()
	s.options.Logger.Debug("a client attached", "agent", agent.Name, "client", first.GetClient())
	conn := &attached{PipeReader: reader, send: frameWriter(func(p []byte) error { return stream.Send(&adminpb.AttachFrame{Data: p}) })}
	return s.options.Streams.ServeStream(stream.Context(), agent, conn)
}

// attached is the client's bytes as a stream.
type attached struct {
	*io.PipeReader
	send frameWriter
}

// Write implements [io.Writer]. The MCP front end writes one message at a time.
func (a *attached) Write(p []byte) (int, error) { return a.send.Write(p) }
