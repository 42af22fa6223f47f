//go:build !linux

package admin

import (
	"context"
	"errors"
	"net"
	"os"

	"github.com/hermesd/hermesd/runtime/disclosure"
)

// incoming reads a connection. The system closes descriptors that come along.
type incoming struct{ conn *net.UnixConn }

// Read implements [io.Reader].
func (c *incoming) Read(p []byte) (int, error) { return c.conn.Read(p) }

func (c *incoming) seal() (came []int, cut bool) { return nil, false }

func closeAll([]int) {}

func (s *Server) serveHandedOver(context.Context, *disclosure.Agent, *attached, []int) error {
	return errors.ErrUnsupported // no descriptors come
}

// CanHandOver reports whether a daemon may be given a client's two streams instead of their messages: on Linux, where both
// are pipes or unix stream sockets.
func CanHandOver(_, _ *os.File) bool { return false }

// HandOver is Attach for a client whose streams can be handed over.
func (c *Client) HandOver(context.Context, string, string, string, *os.File, *os.File) (Along, error) {
	return nil, errors.ErrUnsupported
}
