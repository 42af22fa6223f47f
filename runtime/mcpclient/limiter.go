package mcpclient

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A server may write as much as it likes; the daemon's log takes at most logBurst lines of it each logWindow.
const (
	logBurst  = 100
	logWindow = 10 * time.Second
)

// limiter passes lines to a logger and counts what it holds back.
type limiter struct {
	logger *slog.Logger

	mu      sync.Mutex
	since   time.Time
	passed  int
	dropped int
}

func newLimiter(logger *slog.Logger) *limiter { return &limiter{logger: logger} }

func (l *limiter) log(level slog.Level, message string, attrs ...any) {
	l.mu.Lock()
	now := time.Now()
	dropped := 0
	if now.Sub(l.since) > logWindow {
		dropped, l.since, l.passed, l.dropped = l.dropped, now, 0, 0
	}
	l.passed++
	pass := l.passed <= logBurst
	if !pass {
		l.dropped++
	}
	l.mu.Unlock()
	if dropped > 0 {
		l.logger.Warn("the server wrote too much; lines were left out", "lines", dropped)
	}
	if pass {
		l.logger.Log(context.Background(), level, message, attrs...)
	}
}
