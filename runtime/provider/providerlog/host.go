package providerlog

import (
	"context"
	"log/slog"
	"slices"
)

// Logger is for what the daemon says about the provider: the lines go to the daemon's log and, from information up, are
// kept beside the provider's own.
func (l *Log) Logger() *slog.Logger { return slog.New(&tee{log: l, next: l.logger.Handler()}) }

// Complaints is Logger for what the provider can cause as often as it likes, such as lines that cannot be read: they count as
// lines of its own, and are left out with those when there are too many.
func (l *Log) Complaints() *slog.Logger {
	return slog.New(&tee{log: l, next: l.logger.Handler(), counted: true})
}

// tee is a slog.Handler.
type tee struct {
	log    *Log
	next   slog.Handler
	prefix string // of open groups
	fields []Field

	counted bool // as lines of the provider
}

func (t *tee) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || t.next.Enabled(ctx, level)
}

func (t *tee) Handle(ctx context.Context, r slog.Record) error {
	if t.counted && !t.log.admit() {
		return nil
	}
	if r.Level >= slog.LevelInfo {
		fields := slices.Clone(t.fields)
		r.Attrs(func(a slog.Attr) bool {
			fields = t.add(fields, a)
			return true
		})
		t.log.keep(r.Level, FromHost, t.log.clean(r.Message), fields)
	}
	if !t.next.Enabled(ctx, r.Level) {
		return nil
	}
	return t.next.Handle(ctx, r)
}

// add appends an attribute, but for the provider's name, which every line of this log would have.
func (t *tee) add(fields []Field, a slog.Attr) []Field {
	if a.Key == "provider" || len(fields) == maxFields {
		return fields
	}
	return append(fields, Field{t.log.clean(t.prefix + a.Key), t.log.clean(a.Value.String())})
}

func (t *tee) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *t
	c.next, c.fields = t.next.WithAttrs(attrs), slices.Clone(t.fields)
	for _, a := range attrs {
		c.fields = t.add(c.fields, a)
	}
	return &c
}

func (t *tee) WithGroup(name string) slog.Handler {
	c := *t
	c.next, c.prefix = t.next.WithGroup(name), t.prefix+name+"."
	return &c
}
