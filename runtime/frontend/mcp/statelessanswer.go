package mcp

import (
	"context"
	"encoding/json"
	"errors"
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
	w     http.ResponseWriter
	id    json.RawMessage
	level sdk.LoggingLevel // of the log lines that the client wants; "" for none

	mu    sync.Mutex
	begun bool // the stream has
}

// ID is the session's, of which there is none.
func (s *statelessAnswer) ID() string { return "" }

// NotifyProgress tells the client how far its call is.
func (s *statelessAnswer) NotifyProgress(_ context.Context, p *sdk.ProgressNotificationParams) error {
	return s.notify("notifications/progress", p)
}

// levels are MCP's log levels, by rising severity (RFC 5424).
var levels = []sdk.LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Log sends a log line, if the client wants lines of its level.
func (s *statelessAnswer) Log(_ context.Context, l *sdk.LoggingMessageParams) error {
	if wanted := slices.Index(levels, s.level); wanted < 0 || slices.Index(levels, l.Level) < wanted {
		return nil
	}
	return s.notify("notifications/message", l)
}

func (s *statelessAnswer) notify(method string, params any) error {
	raw, err := json.Marshal(struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache, no-transform")
	}
	if err := s.event(raw); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

func (s *statelessAnswer) event(message []byte) error {
	_, err := s.w.Write(slices.Concat([]byte("event: message\ndata: "), message, []byte("\n\n")))
	return err
}

// complete ends the answer with the call's result, or with a question.
func (s *statelessAnswer) complete(result json.Marshaler) error {
	raw, err := result.MarshalJSON()
	if err != nil {
		return err
	}
	return s.end(http.StatusOK, "result", raw)
}

// refuse ends the answer with an error of the protocol.
func (s *statelessAnswer) refuse(err error) error {
	wire := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	status := http.StatusOK
	if errors.As(err, &wire) && (wire.Code == jsonrpc.CodeInvalidParams || wire.Code == sdk.CodeMissingRequiredClientCapabilities) {
		status = http.StatusBadRequest // SEP-2575
	}
	raw, err := json.Marshal(wire)
	if err != nil {
		return err
	}
	return s.end(status, "error", raw)
}

// end writes the last message.
func (s *statelessAnswer) end(status int, member string, raw []byte) error {
	message := slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), s.id, []byte(`,"`+member+`":`), raw, []byte("}"))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun {
		return s.event(message)
	}
	h := s.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(message)))
	s.w.WriteHeader(status)
	_, err := s.w.Write(message)
	return err
}
