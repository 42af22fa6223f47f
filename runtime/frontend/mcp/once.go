package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/frontend"
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
	raw, err := refusal(id, code, fmt.Sprintf(format, args...))
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

// isJSON reports whether a request says that its body is JSON. The SDK refuses others.
func isJSON(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && media == "application/json"
}

// takeIn reads a body, which can be read again then. It answers the request itself, and ok is false, unless the body is
// one JSON value in which no message says anything twice. What does not claim to be JSON it leaves unread.
func takeIn(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	if !isJSON(r.Header) {
		return nil, true
	}
	if body, ok = frontend.ReadBody(w, r); !ok {
		return nil, false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !rawjson.Valid(body) {
		refuse(w, nil, jsonrpc.CodeParseError, "parse error: the body is not one JSON value in UTF-8; send one message in a request")
		return nil, false
	}
	each := func(message json.RawMessage) {
		if err := saysOnce(message); err != nil && ok {
			ok = false
			refuse(w, idOf(message), jsonrpc.CodeInvalidRequest, "invalid request: %v", err)
		}
	}
	if !rawjson.Elements(body, each) {
		each(body)
	}
	return body, ok
}

// saysOnce is an error if a message has a member more than once, itself or in what the protocol reads of its parameters.
// What a tool's arguments say is the tool's.
func saysOnce(message json.RawMessage) error {
	name, params := repeated(message, "params")
	inParams, meta := repeated(params, "_meta")
	inMeta, _ := repeated(meta, "")
	if name = cmp.Or(name, inParams, inMeta); name != "" {
		return fmt.Errorf("%q is there more than once; say each thing once", frontend.Clip(name, 100))
	}
	return nil
}

// repeated is the first member that an object has more than once, and the value of the member part.
func repeated(object json.RawMessage, part string) (name string, value json.RawMessage) {
	seen := map[string]bool{}
	rawjson.Members(object, func(key string, v json.RawMessage) {
		if seen[key] && name == "" {
			name = key
		}
		seen[key] = true
		if key == part {
			value = v
		}
	})
	return name, value
}

// idOf is a request's id, to be answered with; nil if it has none, or two. (That of a response is one of the daemon's own.)
func idOf(message json.RawMessage) json.RawMessage {
	var id json.RawMessage
	ids, asks := 0, false
	rawjson.Members(message, func(key string, value json.RawMessage) {
		switch key {
		case "id":
			id, ids = value, ids+1
		case "method":
			asks = true
		}
	})
	if ids != 1 || !asks || !isID(id) {
		return nil
	}
	return id
}
