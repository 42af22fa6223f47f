package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"google.golang.org/grpc"

	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
)

// Client speaks to a running daemon. Its errors are the daemon's own texts.
type Client struct {
	adminpb.AdminClient
	adminpb.OversightClient
	conn   *grpc.ClientConn
	socket string
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
	return &Client{adminpb.NewAdminClient(conn), adminpb.NewOversightClient(conn), conn, socket}, nil
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
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	a := &Attachment{framed: framed{conn: conn.(*net.UnixConn), r: bufio.NewReaderSize(conn, 64<<10)}}
	if err := a.tell(frameOpening, opening{Agent: agent, Client: client, Via: via}); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrBroken, err), a.close())
	}
	a.stop = context.AfterFunc(ctx, func() { a.close() }) // reading and writing tell
	return a, nil
}

// Attachment is the stream of one MCP session. One goroutine may read and another write. Reading ends with [io.EOF] when the
// daemon ended the session, else with the reason.
type Attachment struct {
	framed
	stop func() bool
}

// CloseWrite says that the client has said everything. The daemon then answers what is open and ends the session.
func (a *Attachment) CloseWrite() error { return a.tell(frameEnd, ending{}) }

// Close ends the session at once. It may be called more than once.
func (a *Attachment) Close() error {
	a.stop()
	return a.close()
}
