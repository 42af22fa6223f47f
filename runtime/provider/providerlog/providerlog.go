// Package providerlog takes what a provider says: the output of its process, log events of its protocol, and what the
// daemon has to say about it. All of it is bounded, keeps its level, and is marked by the host with where it came from,
// which no text of the provider can forge; secrets in it are masked. It goes to the daemon's log, and the last of it is
// kept for operators who ask about this one provider, across restarts of its process.
package providerlog

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// The bounds of what a provider can say.
const (
	window    = time.Second
	perWindow = 100       // lines; the rest is counted
	maxText   = 4 << 10   // bytes of one text; the rest is cut
	maxFields = 32        // of one line
	keepLines = 2000      // the newest lines kept
	keepBytes = 512 << 10 // of text and fields of the lines kept
)

// Where a line came from.
const (
	FromStdout   = "stdout"
	FromStderr   = "stderr"
	FromProtocol = "protocol" // a log event of the provider
	FromHost     = "hermesd"
)

// Line is one line that was kept.
type Line struct {
	Number uint64 // from 1; a gap means that lines were dropped before they were read
	Time   time.Time
	Level  slog.Level
	From   string // one of the constants
	Text   string
	Fields []Field
}

// Field is one key with its value, as text.
type Field struct{ Key, Value string }

func (l *Line) size() int {
	n := len(l.Text)
	for _, f := range l.Fields {
		n += len(f.Key) + len(f.Value)
	}
	return n
}

// Log is the log of one provider. Make it with [New]; its methods may be called from any goroutine.
type Log struct {
	logger *slog.Logger // the daemon's, with the provider's name
	mask   func(string) string

	mu      sync.Mutex
	began   time.Time // of the current window
	written int
	dropped int

	lines []Line
	bytes int
	last  uint64
	more  chan struct{} // closed, and replaced, with every line
}

// New makes a log that passes everything on to logger, which should carry the provider's name. mask hides secrets; nil hides
// none.
func New(logger *slog.Logger, mask func(string) string) *Log {
	if mask == nil {
		mask = func(s string) string { return s }
	}
	return &Log{logger: logger, mask: mask, more: make(chan struct{})}
}

// Printed takes a line that the process printed. hclog's JSON keeps its level; any other line is information.
func (l *Log) Printed(from string, line []byte) {
	level, text, fields := l.parse(line)
	l.say(level, from, text, fields)
}

// Event takes a log event of the provider's protocol. level is a word of RFC 5424 or of hclog, data any JSON value.
func (l *Log) Event(level, logger string, data []byte) {
	l.say(Level(level), FromProtocol, unquote(data), l.named(logger))
}

// CallEvent takes a log event of a running call. It is kept, but for the daemon's log it is the caller's business.
func (l *Log) CallEvent(call, level, logger string, data []byte) {
	if l.admit() {
		l.keep(Level(level), FromProtocol, l.clean(unquote(data)), append(l.named(logger), Field{"call", l.clean(call)}))
	}
}

func unquote(data []byte) string {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text
	}
	return string(data)
}

func (l *Log) named(logger string) []Field {
	if logger == "" {
		return nil
	}
	return []Field{{"logger", l.clean(logger)}}
}

// say writes a line of the provider to both places. In the daemon's log its keys are grouped, so that they cannot pose as
// the host's.
func (l *Log) say(level slog.Level, from, text string, fields []Field) {
	if !l.admit() {
		return
	}
	text = l.clean(text)
	l.keep(level, from, text, fields)
	attrs := make([]slog.Attr, 0, len(fields)+1)
	for _, f := range fields {
		attrs = append(attrs, slog.String(f.Key, f.Value))
	}
	attrs = append(attrs, slog.String("stream", from))
	l.logger.LogAttrs(context.Background(), level, text, slog.Attr{Key: "said", Value: slog.GroupValue(attrs...)})
}

// admit says whether a line may be written now. The count of those left out before goes first.
func (l *Log) admit() bool {
	l.mu.Lock()
	now, dropped := time.Now(), 0
	if now.Sub(l.began) >= window {
		dropped = l.dropped
		l.began, l.written, l.dropped = now, 0, 0
	}
	ok := l.written < perWindow
	if ok {
		l.written++
	} else {
		l.dropped++
	}
	l.mu.Unlock()
	l.confess(dropped)
	return ok
}

// Flush reports what was left out since the last line. It is called when a process has ended.
func (l *Log) Flush() {
	l.mu.Lock()
	dropped := l.dropped
	l.dropped = 0
	l.mu.Unlock()
	l.confess(dropped)
}

func (l *Log) confess(dropped int) {
	if dropped > 0 {
		l.Logger().Warn("it logs too fast: lines were left out", "lines", dropped)
	}
}

// keep takes a line whose texts are clean.
func (l *Log) keep(level slog.Level, from, text string, fields []Field) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	line := Line{l.last, time.Now(), level, from, text, fields}
	l.lines, l.bytes = append(l.lines, line), l.bytes+line.size()
	drop := 0
	for rest := l.lines; len(rest) > keepLines || l.bytes > keepBytes; rest = l.lines[drop:] {
		l.bytes -= l.lines[drop].size()
		l.lines[drop] = Line{} // its texts are garbage now, though the array stays
		drop++
	}
	l.lines = l.lines[drop:]
	close(l.more)
	l.more = make(chan struct{})
}

// Tail returns the last n lines, oldest first.
func (l *Log) Tail(n int) []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Line(nil), l.lines[max(len(l.lines)-max(n, 0), 0):]...)
}

// After returns the lines that are kept with numbers above n, and a channel that is closed when there is another.
func (l *Log) After(n uint64) (lines []Line, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.last - uint64(len(l.lines)) // the number before the first
	skip := min(n-min(n, first), uint64(len(l.lines)))
	return append([]Line(nil), l.lines[skip:]...), l.more
}

// Last is the number of the newest line, 0 before the first.
func (l *Log) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// clean masks a text, bounds it and makes it valid UTF-8. It is masked first: half of a secret would not be recognised.
func (l *Log) clean(s string) string {
	s = l.mask(s)
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
