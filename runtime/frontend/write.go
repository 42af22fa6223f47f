package frontend

import (
	"net/http"
	"time"
)

const (
	// writeTimeout is how long a client may take to make room for one piece of an answer.
	writeTimeout = 30 * time.Second
	// writePiece is how much of an answer is written at a time, in bytes: a client that reads slowly gets on all the same.
	writePiece = 64 << 10
)

// timedWrites bounds how long a client may keep an answer waiting by not reading it, for every handler. An answer as a
// whole may take as long as it likes, and nothing may be said in it for hours.
func timedWrites(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &timedWriter{w, http.NewResponseController(w)}
		if t.controller.SetWriteDeadline(time.Time{}) != nil { // that of the request before would end a "100 Continue"
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(t, r)
		t.extend() //nolint:errcheck // net/http writes what is left, and finds out
	})
}

// timedWriter gives each piece of an answer its time.
type timedWriter struct {
	http.ResponseWriter
	controller *http.ResponseController
}

func (t *timedWriter) extend() error {
	return t.controller.SetWriteDeadline(time.Now().Add(writeTimeout))
}

func (t *timedWriter) Write(p []byte) (n int, err error) {
	for {
		piece := p[n:min(n+writePiece, len(p))]
		if err := t.extend(); err != nil {
			return n, err
		}
		m, err := t.ResponseWriter.Write(piece)
		if n += m; err != nil || n >= len(p) {
			return n, err
		}
	}
}

// FlushError is what [http.ResponseController] flushes by.
func (t *timedWriter) FlushError() error {
	if err := t.extend(); err != nil {
		return err
	}
	return t.controller.Flush()
}

// Flush implements [http.Flusher], for handlers that ask for it.
func (t *timedWriter) Flush() {
	t.FlushError() //nolint:errcheck // the next Write finds out
}

// Unwrap lets [http.ResponseController] reach the connection.
func (t *timedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
