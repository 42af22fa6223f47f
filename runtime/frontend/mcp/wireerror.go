package mcp

import (
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Most of what goes wrong with a call is a result, which models read and learn from. These are errors of the protocol
// instead, which are the client program's to mend.

// errStaleState answers a request state that nothing waits for: it is used, of another request, or made up.
var errStaleState = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no call waits for this requestState any more; call the tool again without it"}

// refusal is the answer to a message that was not taken in. An id of nil is one that nobody knows (JSON-RPC 2.0, section 5.1).
func refusal(id json.RawMessage, code int64, message string) ([]byte, error) {
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": &jsonrpc.Error{Code: code, Message: message}})
}

// missingCapability is the protocol's error for a tool that needs what the client did not declare (MCP 2026-07-28), or nil
// for another error, and for none.
func missingCapability(e *tool.Error) *jsonrpc.Error {
	if e == nil || e.Extra["required_capabilities"] == nil {
		return nil
	}
	data, err := tool.JSON(map[string]any{"requiredCapabilities": e.Extra["required_capabilities"]})
	if err != nil {
		return nil
	}
	return &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: e.Message, Data: data}
}

// wireError is an error as JSON-RPC has it: a server's own with its code and data, others with what agents read of a tool's
// error as their data.
func wireError(err error) error {
	var known *jsonrpc.Error
	var refusal *provider.Refusal
	var failure *tool.Error
	if errors.As(err, &known) {
		return known
	}
	if !errors.As(err, &failure) {
		return err
	}
	if errors.As(err, &refusal) {
		return &jsonrpc.Error{Code: refusal.Code, Message: failure.Message, Data: refusal.Data}
	}
	wire := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: failure.Message}
	if data, err := tool.JSON(failure); err == nil { // else the message says it
		wire.Data = data
	}
	return wire
}
