package admin

import (
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/tool"
)

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
