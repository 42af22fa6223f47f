package provider

import (
	"context"
	"errors"
	"time"
)

// StopBy is the cause of a [Runner]'s end of context that says by when everything that it started has to be gone, whatever
// its own grace is.
type StopBy time.Time

func (s StopBy) Error() string { return "the daemon is stopping" }

// StopTime is the time of a context that ended with [StopBy].
func StopTime(ctx context.Context) (by time.Time, ok bool) {
	s, ok := errors.AsType[StopBy](context.Cause(ctx))
	return time.Time(s), ok
}
