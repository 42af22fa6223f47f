package pluginhost

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// The bounds of what a plugin can put into the daemon's log.
const (
	logWindow   = time.Second
	logPerSec   = 100     // lines within a window; the rest is counted
	maxLogLine  = 4 << 10 // bytes of one line; the rest is cut
	maxLogAttrs = 32
)

// pluginLog writes what a plugin says to the daemon's log: its level is kept, its keys are grouped so that they cannot pose
// as the host's, and a flood ends in a count.
type pluginLog struct {
	logger *slog.Logger

	mu      sync.Mutex
	window  time.Time // when the current one began
	written int
	dropped int
}

// printed takes a line that the process printed: hclog's JSON keeps its level, other lines are information.
func (l *pluginLog) printed(stream string, line []byte) {
	level, message, fields := parseLine(line)
	l.write(level, message, append(fields, slog.String("stream", stream)))
}

// event takes a log event of the protocol.
func (l *pluginLog) event(level, logger string, data []byte) {
	message := string(data)
	var text string
	if json.Unmarshal(data, &text) == nil {
		message = text
	}
	var fields []slog.Attr
	if logger != "" {
		fields = append(fields, slog.String("logger", cut(logger)))
	}
	l.write(severity(level), message, fields)
}

func (l *pluginLog) write(level slog.Level, message string, fields []slog.Attr) {
	dropped, ok := l.admit(time.Now())
	if dropped > 0 {
		l.logger.Warn("the plugin logs too fast: lines were left out", "lines", dropped)
	}
	if ok {
		l.logger.LogAttrs(context.Background(), level, cut(message), slog.Attr{Key: "plugin", Value: slog.GroupValue(fields...)})
	}
}

// admit says whether a line may be written now, and how many were left out in the windows before.
func (l *pluginLog) admit(now time.Time) (dropped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.window) >= logWindow {
		dropped = l.dropped
		l.window, l.written, l.dropped = now, 0, 0
	}
	if l.written == logPerSec {
		l.dropped++
		return dropped, false
	}
	l.written++
	return dropped, true
}

// flush reports what was left out since the last line.
func (l *pluginLog) flush() {
	l.mu.Lock()
	dropped := l.dropped
	l.dropped = 0
	l.mu.Unlock()
	if dropped > 0 {
		l.logger.Warn("the plugin logs too fast: lines were left out", "lines", dropped)
	}
}

// parseLine reads a line of hclog's JSON form; any other line is its own message.
func parseLine(line []byte) (slog.Level, string, []slog.Attr) {
	text := string(line)
	if !bytes.HasPrefix(line, []byte("{")) {
		return slog.LevelInfo, text, nil
	}
	var entry map[string]any
	if json.Unmarshal(line, &entry) != nil {
		return slog.LevelInfo, text, nil
	}
	message, ok := entry["@message"].(string)
	if !ok {
		return slog.LevelInfo, text, nil
	}
	level, _ := entry["@level"].(string)
	var fields []slog.Attr
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		if key == "@message" || key == "@level" || key == "@timestamp" || len(fields) == maxLogAttrs {
			continue
		}
		fields = append(fields, slog.String(cut(strings.TrimPrefix(key, "@")), cut(fmt.Sprint(entry[key]))))
	}
	return severity(level), message, fields
}

// severity reads the level words of hclog and of RFC 5424.
func severity(word string) slog.Level {
	switch word {
	case "trace", "debug":
		return slog.LevelDebug
	case "warn", "warning":
		return slog.LevelWarn
	case "error", "critical", "alert", "emergency":
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

// cut bounds a text and makes it valid UTF-8.
func cut(s string) string {
	if len(s) > maxLogLine {
		s = s[:maxLogLine] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
