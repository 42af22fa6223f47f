package pluginsdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// Code is a stable word that agents and clients may branch on. docs/errors.md has the whole table.
type Code string

// The codes that plugins use.
const (
	InvalidArguments Code = "invalid_arguments" // the caller must repair the arguments; see [Error.Pointer]
	NotAvailable     Code = "not_available"     // a precondition does not hold; the message says what would help
	ToolFailed       Code = "tool_failed"       // the tool ran and failed at its task
	DownstreamFailed Code = "downstream_failed" // what the tool depends on failed; may work later
	RateLimited      Code = "rate_limited"      // too many calls; may work later
	ResultTooLarge   Code = "result_too_large"  // the caller must ask for less
	Timeout          Code = "timeout"           // the tool did not answer in time
	Cancelled        Code = "cancelled"         // the caller cancelled
	Unsupported      Code = "unsupported"       // the host or its agent cannot do what the plugin asked
	NotGranted       Code = "not_granted"       // the operator did not grant what the plugin asked
	BadConfiguration Code = "bad_configuration" // the plugin is not configured as it must be
)

// rows hold who has to act on a code and whether the same call may work later, as runtime/tool/codes.json has it.
var rows = map[Code]struct {
	blame     string
	retryable bool
}{
	InvalidArguments: {"caller", false},
	NotAvailable:     {"host", false},
	ToolFailed:       {"plugin", false},
	DownstreamFailed: {"downstream", true},
	RateLimited:      {"caller", true},
	ResultTooLarge:   {"plugin", false},
	Timeout:          {"plugin", false},
	Cancelled:        {"caller", false},
	Unsupported:      {"host", false},
	NotGranted:       {"host", false},
	BadConfiguration: {"host", false},
}

// Error is why a call gave no result. Make one with [Errorf] or [InvalidArgument].
type Error struct {
	Code    Code
	Message string // for the model: what happened and what to do next
	Detail  string // for the operator; agents never see it
	// Retryable says that the same call may work later.
	Retryable bool
	Blame     string         // who has to act: "caller", "plugin", "downstream" or "host"
	Pointer   string         // JSON Pointer (RFC 6901) to the argument at fault, "" if none
	Extra     map[string]any // further keys that agents read
	cause     error
}

// Errorf makes an error of a code with that code's blame and retryability. As with [fmt.Errorf], %w keeps a cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	row := rows[code]
	return &Error{Code: code, Message: err.Error(), Blame: row.blame, Retryable: row.retryable, cause: errors.Unwrap(err)}
}

// InvalidArgument says that the argument at pointer (a JSON Pointer such as "/city") is at fault.
func InvalidArgument(pointer, format string, args ...any) *Error {
	e := Errorf(InvalidArguments, format, args...)
	e.Pointer = pointer
	return e
}

// WithDetail adds what only the operator reads and returns e.
func (e *Error) WithDetail(format string, args ...any) *Error {
	e.Detail = fmt.Sprintf(format, args...)
	return e
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.cause }

// asError makes an [*Error] of whatever a handler returned.
func asError(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e) && e != nil:
		if err != error(e) { // keep what was wrapped around it
			wrapped := *e
			wrapped.Message = err.Error()
			return &wrapped
		}
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return Errorf(Timeout, "%w", err)
	case errors.Is(err, context.Canceled):
		return Errorf(Cancelled, "%w", err)
	default:
		return Errorf(ToolFailed, "%w", err)
	}
}

func (e *Error) proto() *pb.Error {
	p := &pb.Error{Code: string(e.Code), Message: e.Message, Detail: e.Detail, Retryable: e.Retryable, Blame: e.Blame, Pointer: e.Pointer}
	if p.Code == "" {
		p.Code, p.Blame = string(ToolFailed), "plugin"
	}
	if len(e.Extra) > 0 {
		extra, err := json.Marshal(e.Extra)
		if err != nil {
			p.Detail += fmt.Sprintf(" (the error's extra keys could not be encoded: %v)", err)
		}
		p.Extra = extra
	}
	return p
}

func fromProto(p *pb.Error) *Error {
	e := &Error{Code: Code(p.GetCode()), Message: p.GetMessage(), Detail: p.GetDetail(), Retryable: p.GetRetryable(),
		Blame: p.GetBlame(), Pointer: p.GetPointer()}
	if len(p.GetExtra()) > 0 {
		if err := json.Unmarshal(p.GetExtra(), &e.Extra); err != nil {
			e.Detail += fmt.Sprintf(" (the error's extra keys are no JSON object: %v)", err)
		}
	}
	return e
}
