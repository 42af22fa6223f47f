package admin

import (
	"context"
	"errors"
	"io"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

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
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
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

// Attach opens an MCP session of an agent ("" is the local one), which ends with ctx at the latest. client is the program's
// name, for logs, and via the ids of the daemons that started it, "" if none did.
func (c *Client) Attach(ctx context.Context, agent, client, via string) (*Attachment, error) {
	ctx, cancel := context.WithCancel(ctx)
	if via != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, viaKey, via)
	}
	stream, err := c.AdminClient.Attach(ctx)
	if err == nil {
		err = stream.Send(&adminpb.AttachFrame{Agent: agent, Client: client})
	}
	if err != nil && !errors.Is(err, io.EOF) { // at EOF, reading tells why
		cancel()
		return nil, err
	}
	return &Attachment{frameWriter{stream}, frameReader{stream: stream}, stream, cancel}, nil
}

// Attachment is the stream of one MCP session. One goroutine may read and another write. Reading ends with [io.EOF] when the
// daemon ended the session, else with the reason.
type Attachment struct {
	frameWriter
	frameReader
	stream grpc.BidiStreamingClient[adminpb.AttachFrame, adminpb.AttachFrame]
	cancel context.CancelFunc
}

// CloseWrite says that the client has said everything. The daemon then answers what is open and ends the session.
func (a *Attachment) CloseWrite() error { return a.stream.CloseSend() }

// Close ends the session at once.
func (a *Attachment) Close() error {
	a.cancel()
	return nil
}
