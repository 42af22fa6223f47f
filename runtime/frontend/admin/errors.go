package admin

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hermesd/hermesd/runtime/tool"
)

// toStatus gives an error its gRPC code. The text stays, but for secrets in it.
func (s *Server) toStatus(err error) error {
	var e *tool.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrRefused):
		return status.Error(codes.InvalidArgument, err.Error())
	case errors.As(err, &e):
		return status.Error(codeOf(e.Code), s.options.Mask(e.Message))
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, "the daemon took too long")
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "cancelled")
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Internal, s.options.Mask(err.Error()))
}

func codeOf(c tool.Code) codes.Code {
	switch c {
	case tool.UnknownTool:
		return codes.NotFound
	case tool.BadRequest, tool.InvalidArguments:
		return codes.InvalidArgument
	case tool.Unauthenticated, tool.NotGranted:
		return codes.PermissionDenied
	case tool.ShuttingDown, tool.ProviderDown, tool.ProviderStarting:
		return codes.Unavailable
	case tool.Cancelled:
		return codes.Canceled
	case tool.Timeout:
		return codes.DeadlineExceeded
	}
	return codes.Internal
}

// ErrBroken is a connection that ended without the daemon's doing: it stopped, or was killed.
var ErrBroken = errors.New("the connection to the daemon broke")

// ErrNotTaken is a daemon that did not take a client's streams and did nothing with them. It serves the client as one whose
// messages are passed on.
var ErrNotTaken = errors.New("the client's streams were not taken")

// ErrRefused is what the daemon does not take from this client, as it is: it asked as an agent that it is not, say. Asking again
// does not help, and nothing ran.
var ErrRefused = errors.New("the daemon refuses this")

// refusal is an [ErrRefused] that says only what the daemon said.
type refusal string

func (r refusal) Error() string      { return string(r) }
func (refusal) Is(target error) bool { return target == ErrRefused } //nolint:errorlint // it is what errors.Is asks

// errVersions answers what one side says and the other does not know.
const errVersions = refusal("the running daemon and this `hermesd` are of different versions; restart the older of the two")

// fromStatus makes what the server said readable: its text, without gRPC's frame.
func fromStatus(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	switch s.Code() {
	case codes.Unavailable:
		return fmt.Errorf("%w: %s", ErrBroken, s.Message())
	case codes.ResourceExhausted:
		return fmt.Errorf("%w: %s", ErrNotTaken, s.Message())
	case codes.InvalidArgument, codes.PermissionDenied:
		return refusal(s.Message())
	case codes.Canceled:
		return context.Canceled
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.Unimplemented:
		return errors.New("the daemon is of another version than this command; restart it: " + s.Message())
	}
	return errors.New(s.Message())
}
