package admin

import (
	"bufio"
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	// endTime bounds how long a client may take to make room for the frame that says how its session ended.
	endTime = 2 * time.Second
	// maxReason bounds what that frame says, in bytes. As JSON it has at most six times as many, for which there is room.
	maxReason = maxSaid / 8
)

// attached is a client's connection as the MCP front end has it.
type attached struct{ framed }

// Close implements [io.Closer]: nothing is read any more. A write that hangs ends with the session.
func (a *attached) Close() error { return a.conn.CloseRead() }

// attach serves an MCP stream on a connection until it ends.
func (s *Server) attach(in *incoming, r *bufio.Reader, who Peer) {
	a := &attached{framed{conn: in.conn, r: r}}
	how := status.Convert(s.toStatus(s.serveAttached(a, in, who)))
	err := a.conn.SetWriteDeadline(time.Now().Add(endTime))
	if err == nil {
		err = a.tell(frameEnd, ending{how.Code(), frontend.Clip(how.Message(), maxReason)})
	}
	if err = errors.Join(err, a.close()); err != nil {
		s.options.Logger.Debug("an attached client was not told of its end", "error", err)
	}
}

func (s *Server) serveAttached(a *attached, in *incoming, who Peer) error {
	o, err := a.opening()
	given, cut := in.seal()
	defer func() { closeAll(given) }()
	switch {
	case s.base.Err() != nil:
		return tool.Errorf(tool.ShuttingDown, "hermesd is stopping; connect again in a moment")
	case err != nil:
		return tool.Errorf(tool.BadRequest, "%w", err)
	case cut && len(given) < o.descriptors:
		return errUnable(errors.New("the daemon may open no more descriptors"))
	case len(given) != o.descriptors:
		return tool.Errorf(tool.BadRequest, "%d descriptors came with an opening to which %d belong", len(given), o.descriptors)
	}
	if err := a.conn.SetDeadline(time.Time{}); err != nil { // gRPC's, of handshakes
		return err
	}
	if err := s.allow(who); err != nil {
		return err
	}
	if s.options.Streams == nil {
		return tool.Errorf(tool.Unsupported, "this daemon serves no MCP streams")
	}
	agent, err := s.agent(o.Agent)
	if err != nil {
		return err
	}
	if s.options.Enter != nil {
		leave, err := s.options.Enter(o.Via)
		if err != nil {
			return err
		}
		defer leave()
	}
	ctx, cancel := context.WithCancel(s.base)
	defer cancel()
	s.options.Logger.Debug("a client attached", "agent", agent.Name, "client", o.Client)
	if len(given) == 0 {
		return s.options.Streams.ServeStream(ctx, agent, a)
	}
	streams := given
	given = nil // they are closed with the session from here on
	return s.serveHandedOver(ctx, agent, a, streams)
}

// errUnable is an [ErrNotTaken] for the other side: the client is to come again and pass its messages on.
func errUnable(err error) error {
	return status.Error(codes.ResourceExhausted, err.Error())
}

// opening reads the client's first frame.
func (a *attached) opening() (o opening, err error) {
	kind, size, err := a.head()
	switch {
	case err != nil:
		return o, err
	case kind == frameHandOver:
		o.descriptors = 2
	case kind != frameOpening:
		return o, errors.New("this is neither gRPC nor the begin of an MCP stream")
	}
	return o, a.body(size, &o)
}
