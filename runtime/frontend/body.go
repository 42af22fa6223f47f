package frontend

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

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

// ReadBody reads the body of a request that passed a [Gate], which bounds it, or answers that it could not be read.
func ReadBody(w http.ResponseWriter, r *http.Request) (raw []byte, ok bool) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		status := http.StatusBadRequest
		if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
			status = http.StatusRequestEntityTooLarge
		}
		WriteError(w, status, tool.Errorf(tool.BadRequest, "the request body was not read: %w", err))
		return nil, false
	}
	return raw, true
}

// room bounds the memory that the large bodies of all requests take together, and divides it between agents.
type room struct {
	maxBody int64

	mu     sync.Mutex
	bytes  Shares
	better chan struct{} // closed, and replaced, when there is more room
}

func newRoom(maxBody int64) *room {
	return &room{maxBody: maxBody, bytes: Shares{Max: largeBodies * maxBody}, better: make(chan struct{})}
}

// take makes room for the body of an agent's request, waiting for other requests if it must. The caller calls leave when the
// request has been answered. A body whose length is not told counts as the largest until it has been read.
func (m *room) take(r *http.Request, agent string) (leave func(), err error) {
	size := r.ContentLength
	if size < 0 { // a chunked body
		size = m.maxBody
	}
	if size <= largeBody {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), roomTimeout)
	defer cancel()
	for {
		enough, better := m.try(agent, size)
		if enough {
			break
		}
		select {
		case <-better:
		case <-ctx.Done():
			return nil, tool.Errorf(tool.RateLimited, "too many large requests are running at once; send this one again in a moment")
		}
	}
	b := &roomyBody{ReadCloser: r.Body, room: m, agent: agent, holds: size}
	if r.ContentLength < 0 {
		r.Body = b
	}
	return func() { b.keep(0) }, nil
}

func (m *room) try(agent string, size int64) (enough bool, better <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes.Take(agent, size), m.better
}

// roomyBody is a body of unknown length. When it has been read it keeps the room that it needs.
type roomyBody struct {
	io.ReadCloser
	room  *room
	agent string
	read  int64 // bytes
	holds int64 // bytes of room; under the room's mutex
}

func (b *roomyBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if errors.Is(err, io.EOF) {
		needed := b.read
		if needed <= largeBody {
			needed = 0
		}
		b.keep(needed)
	}
	return n, err
}

// keep gives back all room but so many bytes.
func (b *roomyBody) keep(most int64) {
	m := b.room
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.holds <= most {
		return
	}
	m.bytes.Leave(b.agent, b.holds-most)
	b.holds = most
	close(m.better)
	m.better = make(chan struct{})
}
