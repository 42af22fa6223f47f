package functions

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/hermesd/hermesd/runtime/tool"
)

// call is one call that a model emitted.
type call struct {
	id        string // the provider's, to answer to; "" if it gave none
	name      string
	arguments json.RawMessage
	err       *tool.Error // it cannot be run as it is
}

// batch is what one request asks for.
type batch struct {
	format *format
	calls  []call
	single bool // a plain call that is not in a list
}

// formatOf is the format that a request names; nil if it names none.
func formatOf(r *http.Request) (*format, *tool.Error) {
	name := r.URL.Query().Get("format")
	if name == "" {
		return nil, nil
	}
	for _, f := range formats {
		if f.name == name {
			return f, nil
		}
	}
	return nil, tool.Errorf(tool.BadRequest, "there is no format %q; take one of %s", name[:min(len(name), 40)], strings.Join(formatNames(), ", "))
}

// envelope is every shape in which calls arrive, at once. A provider's whole response is read like the message in it.
type envelope struct {
	// OpenAI chat completions: a message, or a response with its choices.
	ToolCalls *[]openAICall `json:"tool_calls"`
	Choices   []struct {
		Message struct {
			ToolCalls *[]openAICall `json:"tool_calls"`
		} `json:"message"`
	} `json:"choices"`
	// OpenAI responses: a response with its output, or one item.
	Output []responsesItem `json:"output"`
	responsesItem
	// Anthropic: a message or response with its content (Gemini's response has another thing of that name).
	Content json.RawMessage `json:"content"`
	// Gemini: a content, or a response with its candidates.
	Parts      []geminiPart `json:"parts"`
	Candidates []struct {
		Content struct {
			Parts []geminiPart `json:"parts"`
		} `json:"content"`
	} `json:"candidates"`
	geminiPart
	// Plain.
	Calls *[]plainCall `json:"calls"`
}

type openAICall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type responsesItem struct {
	Type      string          `json:"type"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type anthropicBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type geminiPart struct {
	FunctionCall *geminiCall `json:"functionCall"`
	SnakeCall    *geminiCall `json:"function_call"` // as the Python library prints it
}

type geminiCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type plainCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// decode reads the calls of a body, in the format that was asked for or, if want is nil, in the one that it has.
func decode(raw []byte, want *format) (*batch, *tool.Error) {
	var e envelope
	if bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("[")) {
		if err := e.list(raw); err != nil {
			return nil, notJSON(err)
		}
	} else if err := json.Unmarshal(raw, &e); err != nil {
		return nil, notJSON(err)
	}
	b := e.batch()
	switch {
	case b == nil && want == nil:
		return nil, tool.Errorf(tool.BadRequest, "the body holds no calls; send what the model emitted (OpenAI tool_calls, Anthropic tool_use blocks, Gemini functionCall parts) or {\"name\", \"arguments\"}")
	case b == nil || want != nil && want != b.format && !(want == &mcp && b.format == &plain):
		return nil, tool.Errorf(tool.BadRequest, "the body holds no calls in the format %q", want.name)
	case len(b.calls) > maxCalls:
		return nil, tool.Errorf(tool.BadRequest, "%d calls in one request; send at most %d", len(b.calls), maxCalls)
	}
	return b, nil
}

func notJSON(err error) *tool.Error {
	return tool.Errorf(tool.BadRequest, "the body is not a JSON object of a known shape: %w", err)
}

// list reads a bare list: of Anthropic blocks, of OpenAI items or calls, or of Gemini parts.
func (e *envelope) list(raw []byte) error {
	var kinds []struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &kinds); err != nil {
		return err
	}
	for _, k := range kinds {
		switch k.Type {
		case "function":
			return json.Unmarshal(raw, &e.ToolCalls)
		case "function_call":
			return json.Unmarshal(raw, &e.Output)
		case "tool_use":
			e.Content = raw
			return nil
		}
	}
	return json.Unmarshal(raw, &e.Parts)
}

// batch finds the shape that holds calls; nil if none does.
func (e *envelope) batch() *batch {
	if e.ToolCalls == nil && len(e.Choices) > 0 {
		e.ToolCalls = e.Choices[0].Message.ToolCalls
	}
	if len(e.Candidates) > 0 {
		e.Parts = e.Candidates[0].Content.Parts
	}
	if e.Type == "function_call" {
		e.Output = []responsesItem{e.responsesItem}
	}
	if e.FunctionCall != nil || e.SnakeCall != nil {
		e.Parts = []geminiPart{e.geminiPart}
	}
	if e.ToolCalls != nil {
		b := &batch{format: &openAI}
		for _, c := range *e.ToolCalls {
			b.add(c.ID, c.Function.Name, c.Function.Arguments)
		}
		return b
	}
	b := &batch{}
	for _, item := range e.Output {
		if item.Type == "function_call" {
			b.format = &openAIResponses
			b.add(item.CallID, item.Name, item.Arguments)
		}
	}
	var blocks []anthropicBlock
	if b.format == nil && json.Unmarshal(e.Content, &blocks) == nil {
		for _, block := range blocks {
			if block.Type == "tool_use" {
				b.format = &anthropic
				b.add(block.ID, block.Name, block.Input)
			}
		}
	}
	for _, part := range e.Parts {
		c := part.FunctionCall
		if c == nil {
			c = part.SnakeCall
		}
		if c != nil && (b.format == nil || b.format == &gemini) {
			b.format = &gemini
			b.add(c.ID, c.Name, c.Args)
		}
	}
	switch {
	case b.format != nil:
	case e.Calls != nil:
		b.format = &plain
		for _, c := range *e.Calls {
			b.add(c.ID, c.Name, c.Arguments)
		}
	case e.Name != "":
		b.format, b.single = &plain, true
		b.add("", e.Name, e.Arguments)
	default:
		return nil
	}
	return b
}

// add takes a call in. Arguments are an object, or its JSON as text, as OpenAI sends them.
func (b *batch) add(id, name string, arguments json.RawMessage) {
	c := call{id: id, name: name}
	switch arguments = bytes.TrimSpace(arguments); {
	case len(arguments) == 0 || string(arguments) == "null":
		arguments = json.RawMessage("{}")
	case arguments[0] == '"':
		var text string
		if err := json.Unmarshal(arguments, &text); err == nil {
			arguments = bytes.TrimSpace([]byte(text))
		}
		if len(arguments) == 0 {
			arguments = json.RawMessage("{}")
		}
	}
	switch {
	case name == "":
		c.err = tool.Errorf(tool.BadRequest, "the call names no tool")
	case !json.Valid(arguments) || arguments[0] != '{':
		c.err = tool.Errorf(tool.BadRequest, "the arguments of %s are not a JSON object; send them again, complete", name[:min(len(name), tool.MaxName)])
	default:
		c.arguments = json.RawMessage(arguments)
	}
	b.calls = append(b.calls, c)
}
