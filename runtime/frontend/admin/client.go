package admin

import (
	"context"
	"errors"
	"io"
	"net"

	"google.golang.org/grpc"

	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
)

// Client speaks to a running daemon. Its errors are the daemon's own texts.
type Client struct {
	adminpb.AdminClient
	adminpb.OversightClient
	conn *grpc.ClientConn
}

// Dial connects to the daemon that listens on a socket, or says why there is none.
func Dial(ctx context.Context, socket string) (*Client, error) {
	if err := probe(ctx, socket); err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///"+socket,
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}),
		grpc.WithTransportCredentials(&peerCredentials{}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithAuthority("hermesd"),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return fromStatus(invoke(ctx, method, req, reply, cc, opts...))
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := open(ctx, desc, cc, method, opts...)
			if err != nil {
				return nil, fromStatus(err)
			}
			return readableStream{s}, nil
		}),
	)
	if err != nil {
		return nil, err
	}
	return &Client{adminpb.NewAdminClient(conn), adminpb.NewOversightClient(conn), conn}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// readableStream gives a stream's errors their own text.
type readableStream struct{ grpc.ClientStream }

func (s readableStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return fromStatus(err)
}

// Attach opens an MCP session of an agent ("" is the local one) and copies between it and a pair of streams until one of
// them ends: what in holds goes to the daemon, what the daemon says goes to out. client is the program's name, for logs.
func (c *Client) Attach(ctx context.Context, agent, client string, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.AdminClient.Attach(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&adminpb.AttachFrame{Agent: agent, Client: client}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	failed := make(chan error, 1)
	go func() { // ends with in; a program that attaches ends with its stream
		_, err := io.Copy(frameWriter(func(p []byte) error { return stream.Send(&adminpb.AttachFrame{Data: p}) }), in)
		if closeErr := stream.CloseSend(); err == nil {
			err = closeErr
		}
		failed <- err
	}()
	for {
		frame, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			select {
			case err := <-failed: // the reason why the daemon heard no more, if there is one
				return err
			default:
				return nil
			}
		case err != nil:
			return err
		}
		if _, err := out.Write(frame.GetData()); err != nil {
			return err
		}
	}
}

// frameWriter writes bytes as frames.
type frameWriter func(p []byte) error

func (w frameWriter) Write(p []byte) (int, error) {
	if err := w(append([]byte(nil), p...)); err != nil {
		return 0, err
	}
	return len(p), nil
}
