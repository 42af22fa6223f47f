package tool

import (
	"context"
	"errors"
	"fmt"
)

//go:generate go run ../../internal/codegen/errorcodes -in codes.json -go codes_gen.go -md ../../docs/errors.md

// Code is a stable word that agents and clients may branch on. The table is codes.json; docs/errors.md is made from it.
type Code string

// Blame says who has to act on an error.
type Blame string

// The four who may be at fault.
const (
	BlameCaller     Blame = "caller"
	BlamePlugin     Blame = "plugin"
	BlameDownstream Blame = "downstream"
	BlameHost       Blame = "host"
)

// Error is why a call did not give a result.
type Error struct {
	Code    Code
	Message string // for the model: what happened and what to do next
	Detail  string // for the operator; never shown to agents
	// Retryable says that the same call may work later.
	Retryable bool
	Blame     Blame
	Pointer   string // JSON Pointer (RFC 6901) to the argument at fault, "" if none
	// Extra holds further keys of the error object that agents read, such as "faults", "parameters" and "hint".
	Extra map[string]any
	cause error
}

// Errorf makes an error of a code, with the code's blame and retryability. As with [fmt.Errorf], %w keeps a cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	row := codes[code]
	return &Error{Code: code, Message: err.Error(), Blame: row.blame, Retryable: row.retryable, cause: errors.Unwrap(err)}
}

// With adds a key to the error object that agents read and returns e.
func (e *Error) With(key string, value any) *Error {
	if e.Extra == nil {
		e.Extra = map[string]any{}
	}
	e.Extra[key] = value
	return e
}

// WithDetail adds what only the operator reads and returns e.
func (e *Error) WithDetail(format string, args ...any) *Error {
	e.Detail = fmt.Sprintf(format, args...)
	return e
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.cause }

// Is makes errors.Is(err, &Error{Code: c}) compare codes.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// MarshalJSON writes the object that agents read: {"error": message, "code": code, …}.
func (e *Error) MarshalJSON() ([]byte, error) {
	o := make(map[string]any, len(e.Extra)+4)
	for k, v := range e.Extra {
		o[k] = v
	}
	o["error"], o["code"] = e.Message, e.Code
	if e.Pointer != "" {
		o["pointer"] = e.Pointer
	}
	if e.Retryable {
		o["retryable"] = true
	}
	return JSON(o)
}

// Result is the error as agents get it: one text block with its JSON, marked as an error.
func (e *Error) Result() *Result {
	return &Result{Content: []Content{encodeError(e)}, IsError: true}
}

func encodeError(e *Error) Content {
	raw, err := JSON(e)
	if err != nil { // an Extra value that cannot be marshalled: the message alone
		return Text(e.Message)
	}
	return Text(string(raw))
}

// CodeOf returns the code of err: of the *Error in its chain, of a context's end, else [Internal]. It is "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return AsError(err).Code
}

// AsError returns the *Error in err's chain, or makes one: [Timeout] and [Cancelled] for a context's end, else [Internal].
func AsError(err error) *Error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return Errorf(Timeout, "the call took too long: %w", err)
	case errors.Is(err, context.Canceled):
		return Errorf(Cancelled, "the call was cancelled: %w", err)
	default:
		return Errorf(Internal, "%w", err)
	}
}
