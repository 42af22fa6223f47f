package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

// The SDK decodes a request anew for each thing that it wants to know, which is more work than all that hermesd does with a
// call. So a call in which everything stands where the protocol wants it is served without it. Whatever is unusual about a
// call, and every other method, is the SDK's, which knows the other rules and words the refusals.

// plainCall is a tools/call in which every part is there, once and of its type, and nothing else.
type plainCall struct {
	id        json.RawMessage // as the client wrote it
	name      string
	arguments json.RawMessage
	token     json.RawMessage // of its progress; nil if it wants none
	session   string          // that it names in _meta

	// What a call says about its client from protocol 2026-07-28 on. Before, its session began with that, and version is "".
	version string
	level   sdk.LoggingLevel
	from    *knownClient
}

// maxMetaKeys is how many keys the _meta of a plain call has at most.
const maxMetaKeys = 16

// readPlainCall reads a message, if it is a plain call. last is of the messages that come the same way.
func readPlainCall(message []byte, last *lastClient) (*plainCall, bool) {
	if !rawjson.Valid(message) {
		return nil, false
	}
	var version, method, params, name, meta json.RawMessage
	c := &plainCall{}
	plain := only(message, map[string]*json.RawMessage{"jsonrpc": &version, "id": &c.id, "method": &method, "params": &params}) &&
		only(params, map[string]*json.RawMessage{"name": &name, "arguments": &c.arguments, "_meta": &meta}) &&
		string(version) == `"2.0"` && string(method) == `"`+methodCallTool+`"` && isID(c.id)
	if !plain {
		return nil, false
	}
	if rawjson.IsNull(c.arguments) {
		c.arguments = nil
	}
	c.name, plain = rawjson.String(name)
	return c, plain && (meta == nil || c.readMeta(meta, last))
}

// only finds the members of an object. It reports whether there are no others, and none twice.
func only(raw json.RawMessage, members map[string]*json.RawMessage) bool {
	plain := true
	return rawjson.Members(raw, func(key string, value json.RawMessage) {
		member, known := members[key]
		if !known || *member != nil {
			plain = false
			return
		}
		*member = value
	}) && plain
}

// isID reports whether a value can be the id of a request, or a progress token: text or a number. It goes back as it came,
// so that a number that no float64 holds is not rounded.
func isID(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

// readMeta reads what a request says about its client and about the answer that it wants.
func (c *plainCall) readMeta(raw json.RawMessage, last *lastClient) bool {
	var version, info, caps, level json.RawMessage
	seen := make([]string, 0, maxMetaKeys)
	plain := true
	object := rawjson.Members(raw, func(key string, value json.RawMessage) {
		if !plain || len(seen) == maxMetaKeys || slices.Contains(seen, key) {
			plain = false
			return
		}
		seen = append(seen, key)
		switch key {
		case sdk.MetaKeyProtocolVersion:
			version = value
		case sdk.MetaKeyClientInfo:
			info = value
		case sdk.MetaKeyClientCapabilities:
			caps = value
		case sdk.MetaKeyLogLevel:
			level = value
		case "progressToken":
			c.token = value
		case frontend.SessionMeta:
			c.session, _ = rawjson.String(value)
		}
	})
	if !object || !plain || c.token != nil && !isID(c.token) {
		return false
	}
	if version == nil {
		return info == nil && caps == nil && level == nil
	}
	c.version, _ = rawjson.String(version)
	wanted, _ := rawjson.String(level) // of another type is none, as the SDK has it
	c.level = sdk.LoggingLevel(wanted)
	c.from = last.read(info, caps)
	return c.version == stateless && c.from != nil
}

// standalone is how a call that says everything about itself gets back to its client. send takes what is told on the way.
func (c *plainCall) standalone(ctx context.Context, a *agentServer, send func(context.Context, []byte) error) *reach {
	return &reach{
		ctx: ctx, client: &plainTeller{c.level, send}, version: c.version, caps: c.from.can, log: a.owner.options.Logger,
		round: round{digest: digestOf(methodCallTool, c.name, c.arguments)},
	}
}

// servePlain runs a call and returns the message that answers it. refused is the error of the protocol that it carries, nil
// for a result. Where ctx has ended, nobody is there to read an answer, and err says so.
func (a *agentServer) servePlain(ctx context.Context, c *plainCall, r *reach, from *frontend.Call) (message []byte, refused *jsonrpc.Error, err error) {
	c.ask(r, from)
	result, meanwhile, err := a.perform(ctx, r, from)
	return a.messageOf(ctx, c, r, result, meanwhile, err)
}

// ask puts what a call wants into what goes to the desk.
func (c *plainCall) ask(r *reach, from *frontend.Call) {
	if c.token != nil {
		r.token = c.token
	}
	from.Name, from.Arguments = c.name, c.arguments
}

// messageOf is the message that answers a call's request, as servePlain returns it. Nothing is told after it.
func (a *agentServer) messageOf(ctx context.Context, c *plainCall, r *reach, result *tool.Result, meanwhile *interim, failed error) (message []byte, refused *jsonrpc.Error, err error) {
	r.close()
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	raw, refused, err := a.answerOf(r, result, meanwhile, failed)
	if err != nil {
		return nil, nil, err
	}
	return c.message(raw, refused), refused, nil
}

// answerOf is what answers the request of a call that perform ran: a result, or the error of the protocol that refused is.
func (a *agentServer) answerOf(r *reach, result *tool.Result, meanwhile *interim, failed error) (raw json.RawMessage, refused *jsonrpc.Error, err error) {
	var meta sdk.Meta
	if r.newer() {
		meta = a.owner.identity
	}
	switch {
	case failed != nil:
		refused = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: failed.Error()}
		errors.As(failed, &refused)
		raw, err = json.Marshal(refused)
	case meanwhile != nil:
		raw, err = meanwhile.result(&sdk.CallToolResult{Meta: meta}).MarshalJSON()
	case r.newer() && len(result.Meta) == 0: // as MarshalJSON would write it
		raw = withMeta(newCallResult(&sdk.CallToolResult{}, result, true).raw, a.owner.identityJSON)
	default:
		raw, err = newCallResult(&sdk.CallToolResult{Meta: meta}, result, r.newer()).MarshalJSON()
	}
	return oneLine(raw), refused, err
}

// message is the answer to the call's request.
func (c *plainCall) message(raw json.RawMessage, refused *jsonrpc.Error) []byte {
	member := "result"
	if refused != nil {
		member = "error"
	}
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), c.id, []byte(`,"`+member+`":`), raw, []byte("}"))
}

// oneLine is a JSON text without the line breaks that a provider may have put between its values. They would end a message
// on a stream, and an event over HTTP, and what is behind them could be a message of its own.
func oneLine(raw json.RawMessage) json.RawMessage {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil { // it was checked
		return json.RawMessage("null")
	}
	return b.Bytes()
}
