package mcp

import (
	"bytes"
	"io"
	"net/http"
)

// exactly has the SDK read a body that was taken in with ids that it does not harm, and returns what it is to write to.
func exactly(w http.ResponseWriter, r *http.Request, body []byte, ids *exactIDs) *exactWriter {
	if body != nil {
		r.Body = io.NopCloser(bytes.NewReader(ids.hideAll(body)))
	}
	return &exactWriter{ResponseWriter: w, ids: ids}
}

// exactWriter writes what the SDK sends, a message or an event at a time, with the client's own ids.
type exactWriter struct {
	http.ResponseWriter
	ids     *exactIDs
	refused bool // by its status
}

func (w *exactWriter) WriteHeader(status int) {
	w.refused = status >= http.StatusBadRequest
	w.ResponseWriter.WriteHeader(status)
}

func (w *exactWriter) Write(b []byte) (int, error) {
	if _, err := w.ResponseWriter.Write(w.ids.show(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Unwrap lets [http.ResponseController] flush.
func (w *exactWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
