package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// What a request says twice, a proxy or a filter on its way may have read otherwise than hermesd does. So it is refused.

// singleHeaders are read once, in canonical form. (The gate looks after Authorization.)
var singleHeaders = [...]string{versionHeader, sessionHeader, methodHeader, nameHeader}

// saidTwice is the first header of those that is there more than once; "" if none is.
func saidTwice(h http.Header) string {
	for _, name := range singleHeaders {
		if len(h[name]) > 1 {
			return name
		}
	}
	return ""
}

// refuse answers a request that was not taken in with an error of the protocol. An id of nil is one that nobody knows.
func refuse(w http.ResponseWriter, id json.RawMessage, code int64, format string, args ...any) {
	raw, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)},
	})
	if err != nil { // an id is a value of a text that was valid
		http.Error(w, http.StatusText(http.StatusBadRequest), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusBadRequest)
	w.Write(raw) // a client that does not take its answer has gone
}

// refuseHeader answers a request that has a header more than once.
func refuseHeader(w http.ResponseWriter, name string) {
	refuse(w, nil, sdk.CodeHeaderMismatch, "the header %s is there more than once; send it once", name)
}
