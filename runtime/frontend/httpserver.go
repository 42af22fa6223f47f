package frontend

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	maxConnections = 1024
)

// ServerOptions bound an HTTP server. The zero value works.
type ServerOptions struct {
	// MaxHeaderBytes bounds one request's headers; 0 is 64 KiB.
	MaxHeaderBytes int
	// Logger gets what net/http has to say, at debug level; nil discards it.
	Logger *slog.Logger
}

// NewHTTPServer makes a server for front ends: with time limits for headers, bodies, idle connections and each piece of an
// answer, none for answers as a whole, which may stream for hours, and with what [Gate] needs to tell whose program is at the other end of a connection.
func NewHTTPServer(h http.Handler, opts *ServerOptions) *http.Server {
	if opts == nil {
		opts = &ServerOptions{}
	}
	logger := opts.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	s := &http.Server{
		Handler:           timedWrites(timedBodies(h)),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    opts.MaxHeaderBytes,
		ConnContext:       connContext,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	if s.MaxHeaderBytes <= 0 {
		s.MaxHeaderBytes = maxHeaderBytes
	}
	return s
}

// LimitListener bounds the connections that are open at once; n <= 0 is 1024. More wait until one is closed.
func LimitListener(l net.Listener, n int) net.Listener {
	if n <= 0 {
		n = maxConnections
	}
	return netutil.LimitListener(l, n)
}
