package redact

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
)

// Handler is a [slog.Handler] that masks what a record says before next gets it: its message, and the keys and values of
// its attributes, whatever their type, also within groups. It costs a load while no secrets are known.
func (m *Masker) Handler(next slog.Handler) slog.Handler { return &handler{m, next} }

type handler struct {
	masker *Masker
	next   slog.Handler
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if h.masker.known.Load() == nil {
		return h.next.Handle(ctx, r)
	}
	masked := slog.NewRecord(r.Time, r.Level, h.masker.Mask(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		masked.AddAttrs(h.masker.attr(a))
		return true
	})
	return h.next.Handle(ctx, masked)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.masker, h.next.WithAttrs(h.masker.attrs(attrs))}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.masker, h.next.WithGroup(name)}
}

func (m *Masker) attrs(list []slog.Attr) []slog.Attr {
	masked := make([]slog.Attr, len(list))
	for i, a := range list {
		masked[i] = m.attr(a)
	}
	return masked
}

func (m *Masker) attr(a slog.Attr) slog.Attr {
	a.Key = m.Mask(a.Key)
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(m.Mask(v.String()))
	case slog.KindGroup:
		a.Value = slog.GroupValue(m.attrs(v.Group())...)
	case slog.KindAny:
		a.Value = m.value(v)
	default: // numbers, times and truth values
		a.Value = v
	}
	return a
}

// value masks a value that handlers print in ways of their own. One that would show a secret in any of them becomes the
// masked text; another stays what it is.
func (m *Masker) value(v slog.Value) slog.Value {
	for _, text := range printed(v.Any()) {
		if masked := m.Mask(text); masked != text {
			return slog.StringValue(masked)
		}
	}
	return v
}

// printed are the texts as which handlers may print a value, the best one first. A value that panics when it is asked is
// left to the handler, which knows how to say so.
func printed(x any) (texts []string) {
	defer func() {
		if recover() != nil {
			texts = append(texts, fmt.Sprintf("%+v", x)) // which contains panics itself
		}
	}()
	if err, ok := x.(error); ok {
		return []string{err.Error()}
	}
	if r := reflect.ValueOf(x); r.Kind() == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8 {
		return []string{string(r.Bytes())}
	}
	texts = append(texts, fmt.Sprintf("%+v", x))
	if raw, err := json.Marshal(x); err == nil {
		texts = append(texts, string(raw))
	}
	return texts
}
