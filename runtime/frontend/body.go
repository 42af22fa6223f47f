package frontend

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	// bodyTimeout is how long a client may take to send a request body.
	bodyTimeout = 30 * time.Second
	// largeBody is the size from which bodies are counted: smaller ones are bounded by the number of connections.
	largeBody = 64 << 10
	// largeBodies is how many bodies of the largest size may be in memory at once, with what was made of them.
	largeBodies = 16
	// roomTimeout is how long a request waits for others to end, so that its body has room.
	roomTimeout = 10 * time.Second
)

// timedBodies bounds how long a client may take to send a body, for every handler, also for those that do not read it:
// net/http reads the rest of a body before it answers.
func timedBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			c := http.NewResponseController(w)
			if c.SetReadDeadline(time.Now().Add(bodyTimeout)) == nil {
				r.Body = &timedBody{r.Body, c}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody ends its deadline with the body, so that it never touches an answer that streams. A deadline that passed
// stays: without it, net/http would wait for the rest of the body for ever.
type timedBody struct {
	io.ReadCloser
	controller *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		if clearErr := b.controller.SetReadDeadline(time.Time{}); clearErr != nil {
			return n, clearErr
		}
	}
	return n, err
}

// room bounds the memory that the bodies of all requests take together.
type room struct {
	maxBody int64
	bytes   *semaphore.Weighted
}

func newRoom(maxBody int64) *room {
	return &room{maxBody, semaphore.NewWeighted(largeBodies * maxBody)}
}

// take makes room for a request's body, waiting for other requests if it must. The caller calls leave when the request
// has been answered.
func (m *room) take(r *http.Request) (leave func(), err error) {
	size := r.ContentLength
	if size < 0 { // unknown: a chunked body
		size = m.maxBody
	}
	if size <= largeBody {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), roomTimeout)
	defer cancel()
	if m.bytes.Acquire(ctx, size) != nil {
		return nil, tool.Errorf(tool.RateLimited, "too many large requests are running at once; send this one again in a moment")
	}
	return func() { m.bytes.Release(size) }, nil
}
