package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/frontend"
)

// listing is the answer to tools/list as bytes, made once for an assembly.
type listing struct {
	assembly *disclosure.Assembly
	tools    json.RawMessage // the array
	digest   [sha256.Size]byte
	headers  []*sdk.Tool // those with x-mcp-header annotations
}

// headerAnnotation is the key of a schema's property that a client repeats in a header (SEP-2243).
const headerAnnotation = "x-mcp-header"

func newListing(assembly *disclosure.Assembly, logger *slog.Logger) *listing {
	l := &listing{assembly: assembly}
	var b bytes.Buffer
	b.WriteByte('[')
	for i := range assembly.Tools {
		t := &assembly.Tools[i]
		raw, err := frontend.Definition(t)
		if err != nil {
			logger.Warn("a tool is not listed because its definition is no JSON", "tool", t.Name, "error", err)
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(raw)
		if bytes.Contains(t.InputSchema, []byte(headerAnnotation)) {
			l.headers = append(l.headers, &sdk.Tool{Name: t.Name, InputSchema: t.InputSchema})
		}
	}
	b.WriteByte(']')
	l.tools = b.Bytes()
	l.digest = sha256.Sum256(l.tools)
	return l
}

// addTool registers a tool of a third party. The SDK panics on a schema that it cannot use, which must cost that tool and
// not the daemon.
func addTool(s *sdk.Server, t *sdk.Tool, h sdk.ToolHandler) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	s.AddTool(t, h)
	return nil
}

// listResult is the SDK's answer with our bytes in the place of its tools.
type listResult struct {
	*sdk.ListToolsResult
	tools json.RawMessage
}

func (a *agentServer) list(req *sdk.ListToolsRequest, result sdk.Result) (sdk.Result, error) {
	r, ok := result.(*sdk.ListToolsResult)
	if !ok {
		return result, nil
	}
	tools := a.current().tools
	if req.Params != nil && req.Params.Cursor != "" { // we hand out no cursors: nothing follows any
		tools = json.RawMessage("[]")
	}
	return &listResult{r, tools}, nil
}

// MarshalJSON implements [json.Marshaler].
func (r *listResult) MarshalJSON() ([]byte, error) {
	rest := *r.ListToolsResult
	rest.Tools = nil
	raw, err := json.Marshal(&rest)
	if err != nil {
		return nil, err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return nil, err
	}
	delete(keys, "tools")
	return object(keys, "tools", r.tools)
}

// object writes a JSON object of keys, and of one more whose value is written as it is.
func object(keys map[string]json.RawMessage, last string, value json.RawMessage) ([]byte, error) {
	raw, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(raw)+len(last)+len(value)+8)
	b = append(b, raw[:len(raw)-1]...)
	if len(keys) > 0 {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, last...)
	b = append(b, `":`...)
	b = append(b, value...)
	return append(b, '}'), nil
}
