package pluginsdk

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hermesd/hermesd/pluginsdk/internal/serve"
)

// Logger returns a logger whose lines go to the caller of the running call; outside a call they go to the daemon's log.
// A line without attributes arrives as its message, one with attributes as an object with the message under "msg".
func Logger(ctx context.Context) *slog.Logger {
	c := serve.CallFrom(ctx)
	if c == nil {
		return slog.Default()
	}
	h := &callHandler{call: c, shared: &rendering{}}
	if f := frameFrom(ctx); f != nil {
		h.hide, h.name = f.hide, f.plugin.Name
	}
	h.inner = slog.NewJSONHandler(&h.shared.buf, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: dropStandard})
	return slog.New(h)
}

// callHandler renders a record with a JSON handler and sends it as a log event of the call.
type callHandler struct {
	call   *serve.Call
	hide   *redactor
	name   string
	inner  slog.Handler
	shared *rendering
}

// rendering is the buffer that a handler and those derived from it write to.
type rendering struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (h *callHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *callHandler) Handle(ctx context.Context, r slog.Record) error {
	h.shared.mu.Lock()
	h.shared.buf.Reset()
	err := h.inner.Handle(ctx, r)
	line := bytes.Clone(bytes.TrimSpace(h.shared.buf.Bytes()))
	h.shared.mu.Unlock()
	if err != nil {
		return err
	}
	if text, ok := onlyMessage(line); ok {
		if line, err = compact(text); err != nil {
			return err
		}
	}
	h.call.Log(severity(r.Level), h.name, []byte(h.hide.text(string(line))))
	return nil
}

func (h *callHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	derived.inner = h.inner.WithAttrs(attrs)
	return &derived
}

func (h *callHandler) WithGroup(name string) slog.Handler {
	derived := *h
	derived.inner = h.inner.WithGroup(name)
	return &derived
}

// dropStandard leaves out what the event carries by itself.
func dropStandard(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
		return slog.Attr{}
	}
	return a
}

func onlyMessage(line []byte) (string, bool) {
	var o map[string]json.RawMessage
	if json.Unmarshal(line, &o) != nil || len(o) != 1 {
		return "", false
	}
	var text string
	return text, json.Unmarshal(o[slog.MessageKey], &text) == nil
}

// severity is the RFC 5424 word for a level, as MCP names them.
func severity(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelInfo+2:
		return "info"
	case l < slog.LevelWarn:
		return "notice"
	case l < slog.LevelError:
		return "warning"
	case l < slog.LevelError+4:
		return "error"
	default:
		return "critical"
	}
}

// processLogger writes go-hclog's JSON lines, which the daemon reads from stderr.
func processLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: hclogKeys}))
}

func hclogKeys(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		return slog.String("@timestamp", a.Value.Time().Format(time.RFC3339Nano))
	case slog.LevelKey:
		level, ok := a.Value.Any().(slog.Level)
		if !ok {
			return a
		}
		return slog.String("@level", hclogLevel(level))
	case slog.MessageKey:
		return slog.Attr{Key: "@message", Value: a.Value}
	}
	return a
}

func hclogLevel(l slog.Level) string {
	switch {
	case l < slog.LevelDebug:
		return "trace"
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warn"
	default:
		return "error"
	}
}

// plainLogger writes for people who started the plugin by hand.
func plainLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.LevelKey {
			return slog.String(a.Key, strings.ToLower(a.Value.String()))
		}
		return dropStandard(groups, a)
	}}))
}
