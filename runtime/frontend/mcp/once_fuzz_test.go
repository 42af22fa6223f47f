package mcp

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Whatever a body is, it is taken in as it came, or refused with one answer that is JSON.
func FuzzTakeIn(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"x":1}}}`)
	f.Add(`{"id":1,"id":2}`)
	f.Add(`[{"params":{"_meta":{"a":1,"\u0061":2}}}]`)
	f.Add(`{"id":"\ud800","method":"a","method":"b"}{}`)
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if _, ok := takeIn(w, r); !ok {
			if w.Code != http.StatusBadRequest || !json.Valid(w.Body.Bytes()) {
				t.Errorf("HTTP %d: %q", w.Code, w.Body)
			}
			return
		}
		if again, err := io.ReadAll(r.Body); err != nil || string(again) != body || !json.Valid(again) || w.Body.Len() > 0 {
			t.Errorf("read %q, %v; answered %q", again, err, w.Body)
		}
	})
}
