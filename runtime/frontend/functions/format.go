package functions

import (
	"encoding/json"

	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

// format is one provider's shapes.
type format struct {
	name   string
	tools  func([]disclosure.Tool) any
	answer func(*batch, []*tool.Result) any
}

// The formats. A plain call is answered as MCP has it, so that plain and mcp differ in nothing but how calls are found.
var (
	openAI          = format{"openai", openAITools, openAIAnswer}
	openAIFunction  = format{"openai", openAITools, openAIFunctionAnswer} // the deprecated function_call
	openAIResponses = format{"openai-responses", responsesTools, responsesAnswer}
	anthropic       = format{"anthropic", anthropicTools, anthropicAnswer}
	gemini          = format{"gemini", geminiTools, geminiAnswer}
	mcp             = format{"mcp", mcpTools, plainAnswer}
	plain           = format{"plain", mcpTools, plainAnswer}
)

var formats = []*format{&openAI, &openAIResponses, &anthropic, &gemini, &mcp}

func formatNames() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

type object = map[string]any

func each(tools []disclosure.Tool, shape func(*disclosure.Tool) any) any {
	list := make([]any, 0, len(tools))
	for i := range tools {
		list = append(list, shape(&tools[i]))
	}
	return list
}

// openAITools is the shape of chat completions.
func openAITools(tools []disclosure.Tool) any {
	return each(tools, func(t *disclosure.Tool) any {
		return object{"type": "function", "function": object{"name": t.Name, "description": t.Description, "parameters": t.InputSchema}}
	})
}

// responsesTools is the shape of the responses API. There strict is the default and would refuse most schemas.
func responsesTools(tools []disclosure.Tool) any {
	return each(tools, func(t *disclosure.Tool) any {
		return object{"type": "function", "name": t.Name, "description": t.Description, "parameters": t.InputSchema, "strict": false}
	})
}

func anthropicTools(tools []disclosure.Tool) any {
	return each(tools, func(t *disclosure.Tool) any {
		return object{"name": t.Name, "description": t.Description, "input_schema": t.InputSchema}
	})
}

// geminiTools is one tool with all functions. parametersJsonSchema takes JSON Schema as it is; parameters would not.
func geminiTools(tools []disclosure.Tool) any {
	if len(tools) == 0 {
		return []any{}
	}
	return []any{object{"functionDeclarations": each(tools, func(t *disclosure.Tool) any {
		return object{"name": t.Name, "description": t.Description, "parametersJsonSchema": t.InputSchema}
	})}}
}

func mcpTools(tools []disclosure.Tool) any {
	return each(tools, func(t *disclosure.Tool) any {
		raw, err := frontend.Definition(t)
		if err != nil { // icons or _meta that are no JSON: without them
			return object{"name": t.Name, "description": t.Description, "inputSchema": t.InputSchema}
		}
		return raw
	})
}

// openAIAnswer is one tool message for each call. They hold text only.
func openAIAnswer(b *batch, results []*tool.Result) any {
	messages := make([]any, len(results))
	for i, r := range results {
		messages[i] = object{"role": "tool", "tool_call_id": b.calls[i].id, "content": textOf(r)}
	}
	return object{"messages": messages}
}

// openAIFunctionAnswer is the function message that answers a function_call.
func openAIFunctionAnswer(b *batch, results []*tool.Result) any {
	return object{"messages": []any{object{"role": "function", "name": b.calls[0].name, "content": textOf(results[0])}}}
}

// responsesAnswer is one output item for each call: text, or a list of parts where there is an image.
func responsesAnswer(b *batch, results []*tool.Result) any {
	items := make([]any, len(results))
	for i, r := range results {
		var output any = textOf(r)
		if blocks := blocksOf(r); hasImage(blocks) {
			parts := make([]any, len(blocks))
			for j, block := range blocks {
				if block.isImage() {
					parts[j] = object{"type": "input_image", "image_url": "data:" + block.MIMEType + ";base64," + block.Data}
				} else {
					parts[j] = object{"type": "input_text", "text": block.asText()}
				}
			}
			output = parts
		}
		items[i] = object{"type": "function_call_output", "call_id": b.calls[i].id, "output": output}
	}
	return object{"input": items}
}

// anthropicAnswer is one user message with a tool_result for each call, in the order of the calls.
func anthropicAnswer(b *batch, results []*tool.Result) any {
	content := make([]any, len(results))
	for i, r := range results {
		blocks := blocksOf(r)
		parts := make([]any, len(blocks))
		for j, block := range blocks {
			if block.isImage() {
				parts[j] = object{"type": "image", "source": object{"type": "base64", "media_type": block.MIMEType, "data": block.Data}}
			} else {
				parts[j] = object{"type": "text", "text": block.asText()}
			}
		}
		result := object{"type": "tool_result", "tool_use_id": b.calls[i].id, "content": parts}
		if r.IsError {
			result["is_error"] = true
		}
		content[i] = result
	}
	return object{"messages": []any{object{"role": "user", "content": content}}}
}

// geminiAnswer is one content with a functionResponse for each call. "output" and "error" are the keys that Gemini reads;
// images go into the response's own parts.
func geminiAnswer(b *batch, results []*tool.Result) any {
	parts := make([]any, len(results))
	for i, r := range results {
		key, value := "output", any(textOf(r))
		if r.IsError {
			key = "error"
		}
		if json.Valid(r.Structured) && !r.IsError {
			value = r.Structured
		}
		response := object{"name": b.calls[i].name, "response": object{key: value}}
		if b.calls[i].id != "" {
			response["id"] = b.calls[i].id
		}
		var media []any
		for _, block := range blocksOf(r) {
			if block.isImage() {
				media = append(media, object{"inlineData": object{"mimeType": block.MIMEType, "data": block.Data}})
			}
		}
		if media != nil {
			response["parts"] = media
		}
		parts[i] = object{"functionResponse": response}
	}
	return object{"contents": []any{object{"role": "user", "parts": parts}}}
}

// plainAnswer is MCP's CallToolResult, or a list of them with the calls' ids.
func plainAnswer(b *batch, results []*tool.Result) any {
	if b.single {
		return wire(results[0])
	}
	type numbered struct {
		ID   string `json:"id,omitempty"`
		Name string `json:"name"`
		tool.Result
	}
	list := make([]numbered, len(results))
	for i, r := range results {
		list[i] = numbered{b.calls[i].id, b.calls[i].name, *wire(r)}
	}
	return object{"results": list}
}
