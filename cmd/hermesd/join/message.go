package join

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/tool"
)

type kind int

const (
	malformed kind = iota // the daemon says what is wrong with it, and to no id
	blank
	aRequest
	aNotification
	aResponse
)

// message is what a line says, as far as it matters here. Its parts are those of the line.
type message struct {
	kind   kind
	id     json.RawMessage
	method string
	params json.RawMessage
	result json.RawMessage
	failed json.RawMessage
}

// parse looks at a line without decoding it.
func parse(raw []byte) *message {
	m := &message{}
	if len(bytes.TrimSpace(raw)) == 0 {
		m.kind = blank
		return m
	}
	ids := 0
	rawjson.Members(raw, func(key string, value json.RawMessage) {
		switch key {
		case "id":
			m.id = value
			ids++
		case "method":
			m.method, _ = rawjson.String(value)
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			m.failed = value
		}
	})
	switch named := validID(m.id); {
	case ids > 1:
	case m.method != "" && named:
		m.kind = aRequest
	case m.method != "" && m.id == nil:
		m.kind = aNotification
	case m.method == "" && named && (m.result != nil || m.failed != nil):
		m.kind = aResponse
	}
	return m
}

// validID reports whether an id is a string or a number, as JSON-RPC 2.0 has them.
func validID(id json.RawMessage) bool {
	return len(id) > 0 && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9') && json.Valid(id)
}

// keyOf is what an id has in common with itself as the other side writes it: one may escape in a text what the other does not.
// Numbers come back as they went.
func keyOf(id json.RawMessage) string {
	if text, ok := rawjson.String(id); ok {
		return `"` + text
	}
	return string(id)
}

// withID is the message under another id.
func (m *message) withID(id json.RawMessage) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	if m.method != "" {
		b = append(append(b, `,"method":`...), quote(m.method)...)
	}
	for _, part := range []struct {
		name  string
		value json.RawMessage
	}{{`,"params":`, m.params}, {`,"result":`, m.result}, {`,"error":`, m.failed}} {
		if part.value != nil {
			b = append(append(b, part.name...), part.value...)
		}
	}
	return append(b, '}')
}

// requestID is the id that a notifications/cancelled speaks of.
func requestID(params json.RawMessage) (id json.RawMessage) {
	rawjson.Members(params, func(key string, value json.RawMessage) {
		if key == "requestId" {
			id = value
		}
	})
	return id
}

// cancelled tells the client that the daemon's request of this id, as JSON, needs no answer any more.
func cancelled(id string) []byte {
	return []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"the daemon no longer waits for an answer"}}`)
}

// answer is an error in the place of the daemon's answer. id is nil where the request's is not known.
func answer(id json.RawMessage, e *tool.Error) []byte {
	data, err := tool.JSON(e)
	if err != nil { // it holds texts only
		data = json.RawMessage("null")
	}
	return errorResponse(id, jsonrpc.CodeInternalError, e.Message, data)
}

// complaint answers a line that is too long to be looked at.
func complaint(err error) []byte {
	return errorResponse(nil, jsonrpc.CodeInvalidRequest, err.Error(), nil)
}

func errorResponse(id json.RawMessage, code int, text string, data []byte) []byte {
	if id == nil {
		id = json.RawMessage("null") // JSON-RPC 2.0, section 5.1
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = strconv.AppendInt(append(b, `,"error":{"code":`...), int64(code), 10)
	b = append(append(b, `,"message":`...), quote(text)...)
	if data != nil {
		b = append(append(b, `,"data":`...), data...)
	}
	return append(b, "}}"...)
}

// interrupted is the answer to a request that was in flight when the daemon went away.
func interrupted(method string) *tool.Error {
	if method == methodCall {
		return tool.Errorf(tool.OutcomeUnknown, "the daemon went away during the call; it may or may not have run: check what happened before you call it again")
	}
	return tool.Errorf(tool.ShuttingDown, "the daemon went away before it answered; send the request again in a moment, and if nobody restarts the daemon, start it with `hermesd serve`")
}

// absent is the answer to a request that came while the daemon is away, or that refuses the client.
func absent(reason error) *tool.Error {
	if errors.Is(reason, admin.ErrRefused) {
		return tool.Errorf(tool.Unauthenticated, "the daemon refuses this client, so this was not sent: %w; put that right (an agent is named by `hermesd mcp --agent NAME` where the client starts it, and by its block in the daemon's configuration) and start the client's connection anew", reason)
	}
	return tool.Errorf(tool.NotSent, "the daemon is away, so this was not sent (%w); it is joined again by itself: send the request again in a moment, and if nobody restarts the daemon, start it with `hermesd serve`", reason)
}

// quote writes a text as a JSON string.
func quote(text string) json.RawMessage {
	raw, err := tool.JSON(text)
	if err != nil { // a string always marshals
		return json.RawMessage(`""`)
	}
	return raw
}
