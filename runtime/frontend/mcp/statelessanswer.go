package mcp

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// statelessAnswer writes the HTTP answer to a call: one JSON document, or a stream of events if the call has something to
// tell before it ends.
type statelessAnswer struct {
	w http.ResponseWriter

	mu    sync.Mutex
	begun bool // the stream has
}

// tell sends a message that comes before the answer.
func (s *statelessAnswer) tell(_ context.Context, message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache, no-transform")
	}
	if err := s.event(message); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

func (s *statelessAnswer) event(message []byte) error {
	_, err := s.w.Write(slices.Concat([]byte("event: message\ndata: "), message, []byte("\n\n")))
	return err
}

// end writes the last message. refused is the error of the protocol that it carries, nil for a result.
func (s *statelessAnswer) end(refused *jsonrpc.Error, message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun {
		return s.event(message)
	}
	return writeDocument(s.w, statusOf(refused), message)
}

// writeDocument answers a request with one message.
func writeDocument(w http.ResponseWriter, status int, message []byte) error {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(message)))
	w.WriteHeader(status)
	_, err := w.Write(message)
	return err
}

// statusOf is the status of an answer that is one document (SEP-2575).
func statusOf(refused *jsonrpc.Error) int {
	if refused != nil && (refused.Code == jsonrpc.CodeInvalidParams || refused.Code == sdk.CodeMissingRequiredClientCapabilities) {
		return http.StatusBadRequest
	}
	return http.StatusOK
}
