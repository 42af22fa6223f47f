package mcp

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"sync/atomic"

	"github.com/hermesd/hermesd/internal/rawjson"
)

const methodCancelled = "notifications/cancelled"

// exactIDs keeps request ids as the client wrote them. JSON-RPC lets an id be any number; the SDK makes a 64-bit integer of
// it by way of a float, so that 9007199254740993 and 1.5 would be answered under another id. Such an id passes the SDK as a
// string that holds its text, behind a mark that no client can guess.
type exactIDs struct {
	mark string
	used atomic.Bool
}

func newExactIDs() *exactIDs { return &exactIDs{mark: rand.Text() + ":"} }

// hideAll is hide for a message or a batch of them.
func (x *exactIDs) hideAll(raw json.RawMessage) json.RawMessage {
	batch := []byte{'['}
	each := func(message json.RawMessage) {
		if len(batch) > 1 {
			batch = append(batch, ',')
		}
		batch = append(batch, x.hide(message)...)
	}
	if !rawjson.Elements(raw, each) {
		return x.hide(raw)
	}
	return append(batch, ']')
}

// hide is a message of the client whose numbers reach the SDK unharmed. (The id of an answer is one of the SDK's own.)
func (x *exactIDs) hide(raw json.RawMessage) json.RawMessage {
	id, method, params := parts(raw)
	if method != nil && harmed(id) {
		raw = replace(raw, "id", x.hidden(id))
	}
	if name, _ := rawjson.String(method); name != methodCancelled {
		return raw
	}
	rawjson.Members(params, func(key string, value json.RawMessage) {
		if key == "requestId" && harmed(value) {
			raw = replace(raw, "params", replace(params, "requestId", x.hidden(value)))
		}
	})
	return raw
}

// parts are those members of a message that every request may have.
func parts(message json.RawMessage) (id, method, params json.RawMessage) {
	rawjson.Members(message, func(key string, value json.RawMessage) {
		switch key {
		case "id":
			id = value
		case "method":
			method = value
		case "params":
			params = value
		}
	})
	return id, method, params
}

// key is a request's id as the SDK has it in the message that hide returns: text, or a 64-bit integer.
func (x *exactIDs) key(id json.RawMessage) any {
	if text, ok := rawjson.String(id); ok {
		return text
	}
	if harmed(id) {
		return x.mark + string(id)
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil { // neither text nor a number: no request has it
		return nil
	}
	return n
}

func (x *exactIDs) hidden(number json.RawMessage) json.RawMessage {
	x.used.Store(true)
	return json.RawMessage(`"` + x.mark + string(number) + `"`)
}

// harmed reports whether an id is a number that the SDK would write otherwise.
func harmed(id json.RawMessage) bool {
	if len(id) == 0 || id[0] != '-' && (id[0] < '0' || id[0] > '9') {
		return false
	}
	f, err := strconv.ParseFloat(string(id), 64)
	return err != nil || strconv.FormatInt(int64(f), 10) != string(id)
}

// replace is an object with another value under a key.
func replace(object json.RawMessage, key string, value json.RawMessage) json.RawMessage {
	b := []byte{'{'}
	rawjson.Members(object, func(k string, v json.RawMessage) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		if k == key {
			v = value
		}
		name, err := json.Marshal(k)
		if err != nil { // a string always marshals
			return
		}
		b = append(append(append(b, name...), ':'), v...)
	})
	return append(b, '}')
}

// show is a message to the client with its own numbers again.
func (x *exactIDs) show(raw []byte) []byte {
	if !x.used.Load() {
		return raw
	}
	begin := []byte(`"` + x.mark)
	for {
		at := bytes.Index(raw, begin)
		if at < 0 {
			return raw
		}
		number, rest, ok := bytes.Cut(raw[at+len(begin):], []byte{'"'})
		if !ok {
			return raw
		}
		raw = bytes.Join([][]byte{raw[:at], number, rest}, nil)
	}
}
