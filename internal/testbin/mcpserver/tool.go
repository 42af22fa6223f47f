package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// noArguments is the schema of most tools.
const noArguments = `{"type":"object"}`

// schema2020 has the keywords that a gateway must not lose (SEP-1613, SEP-2106).
const schema2020 = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`

const headerSchema = `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`

// handler is a tool without its SDK's wrapping.
type handler = func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error)

func add(s *mcp.Server, name, schema string, h handler) {
	s.AddTool(&mcp.Tool{Name: name, Description: "Conformance: " + name, InputSchema: json.RawMessage(schema)}, h)
}

func text(format string, args ...any) *mcp.CallToolResult {
	return blocks(&mcp.TextContent{Text: fmt.Sprintf(format, args...)})
}

func blocks(content ...mcp.Content) *mcp.CallToolResult { return &mcp.CallToolResult{Content: content} }

// always is a tool that answers the same each time.
func always(r *mcp.CallToolResult) handler {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return r, nil }
}

func addTools(s *mcp.Server) {
	image := &mcp.ImageContent{Data: pixel, MIMEType: "image/png"}
	embedded := &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://embedded", MIMEType: "text/plain", Text: "An embedded resource."}}
	for name, result := range map[string]*mcp.CallToolResult{
		"test_simple_text":            text("This is a simple text response for testing."),
		"test_image_content":          blocks(image),
		"test_audio_content":          blocks(&mcp.AudioContent{Data: silence, MIMEType: "audio/wav"}),
		"test_embedded_resource":      blocks(embedded),
		"test_multiple_content_types": blocks(&mcp.TextContent{Text: "Several kinds:"}, image, embedded),
		"test_streaming_elicitation":  text("nothing was asked for"),
		"test_error_handling":         {Content: []mcp.Content{&mcp.TextContent{Text: "This tool fails on purpose."}}, IsError: true},
	} {
		add(s, name, noArguments, always(result))
	}
	add(s, "test_tool_with_logging", noArguments, logs("started", "processing", "completed"))
	add(s, "test_logging_tool", noArguments, logs("one line"))
	add(s, "test_tool_with_progress", noArguments, progress)
	add(s, "test_missing_capability", noArguments, needsSampling)
	add(s, "test_reconnection", noArguments, reconnect)
	add(s, "greet", `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`, greet)
	add(s, "json_schema_2020_12_tool", schema2020, echo)
	add(s, "test_x_mcp_header", headerSchema, echo)
	var tools, prompts atomic.Int32 // a list that says the same again is no change
	add(s, "test_trigger_tool_change", noArguments, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		add(s, fmt.Sprintf("transient_tool_%d", tools.Add(1)), noArguments, always(text("here")))
		return text("the list of tools changed"), nil
	})
	add(s, "test_trigger_prompt_change", noArguments, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		addPrompt(s, fmt.Sprintf("transient_prompt_%d", prompts.Add(1)), nil, says("user", &mcp.TextContent{Text: "here"}))
		return text("the list of prompts changed"), nil
	})
}

func echo(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return text("called with %s", r.Params.Arguments), nil
}

func greet(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct{ Name string }
	if json.Unmarshal(r.Params.Arguments, &args) != nil {
		return nil, errArguments
	}
	return text("Hello, %s!", args.Name), nil
}

func logs(lines ...string) handler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, line := range lines {
			//lint:ignore SA1019 clients before 2026-07-28 have it
			if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: line}); err != nil {
				return nil, err
			}
		}
		return text("%d lines were logged", len(lines)), nil
	}
}

func progress(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	token := r.Params.GetProgressToken()
	for _, done := range []float64{0, 50, 100} {
		if token == nil {
			break
		}
		if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100, Message: "step"}); err != nil {
			return nil, err
		}
	}
	return text("progress was reported"), nil
}

func needsSampling(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if can := r.ClientCapabilities(); can != nil && can.Sampling != nil {
		return text("the client offers sampling"), nil
	}
	return nil, &jsonrpc.Error{
		Code: mcp.CodeMissingRequiredClientCapabilities, Message: "sampling is needed",
		Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`),
	}
}

// reconnect closes the stream where there is one, and answers on the next.
func reconnect(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if r.Extra != nil && r.Extra.CloseSSEStream != nil {
		r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{})
	}
	return text("the client came back"), nil
}

var errArguments = errors.New("the arguments cannot be read")
