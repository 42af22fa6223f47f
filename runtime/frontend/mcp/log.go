package mcp

import (
	"context"
	"log/slog"
)

// demoted passes on what the SDK logs, at levels that fit a daemon: the SDK has several lines at info level for each
// request, and calls a client's mistake an error.
type demoted struct{ slog.Handler }

func demote(l slog.Level) slog.Level {
	if l >= slog.LevelError {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// Enabled implements [slog.Handler].
func (d demoted) Enabled(ctx context.Context, l slog.Level) bool {
	return d.Handler.Enabled(ctx, demote(l))
}

// Handle implements [slog.Handler].
func (d demoted) Handle(ctx context.Context, r slog.Record) error {
	r.Level = demote(r.Level)
	return d.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (d demoted) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demoted{d.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (d demoted) WithGroup(name string) slog.Handler { return demoted{d.Handler.WithGroup(name)} }
