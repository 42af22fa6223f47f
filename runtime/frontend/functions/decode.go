package functions

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/hermesd/hermesd/runtime/frontend"
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
	return nil, tool.Errorf(tool.BadRequest, "there is no format %q; take one of %s", frontend.Clip(name, 40), strings.Join(formatNames(), ", "))
}

// envelope is every shape in which calls arrive, at once. A provider's whole response is read like the message in it.
type envelope struct {
	// OpenAI chat completions: a message, or a response with its choices.
	ToolCalls *[]entry[openAICall] `json:"tool_calls"`
	Choices   []struct {
		Message struct {
			ToolCalls *[]entry[openAICall] `json:"tool_calls"`
			SnakeCall *geminiCall          `json:"function_call"`
		} `json:"message"`
	} `json:"choices"`
	// OpenAI responses: a response with its output, or one item.
	Output []entry[responsesItem] `json:"output"`
	responsesItem
	// Anthropic: a message or response with its content (Gemini's response has another thing of that name).
	Content json.RawMessage `json:"content"`
	// Gemini: a content, or a response with its candidates.
	Parts      []entry[geminiPart] `json:"parts"`
	Candidates []struct {
		Content struct {
			Parts []entry[geminiPart] `json:"parts"`
		} `json:"content"`
	} `json:"candidates"`
	geminiPart
	// Plain.
	Calls *[]entry[plainCall] `json:"calls"`
}

// entry is one member of a list. One that is not of its list's shape fails alone.
type entry[T any] struct {
	v   T // what could be read
	err error
}

func (e *entry[T]) UnmarshalJSON(raw []byte) error {
	e.err = json.Unmarshal(raw, &e.v)
	return nil
}

// callID is the id of a call; some servers number them.
type callID string

func (id *callID) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, (*string)(id))
	}
	var n json.Number
	err := json.Unmarshal(raw, &n)
	*id = callID(n)
	return err
}

type openAICall struct {
	ID       callID `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type responsesItem struct {
	Type      string          `json:"type"`
	CallID    callID          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type anthropicBlock struct {
	Type  string          `json:"type"`
	ID    callID          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type geminiPart struct {
	FunctionCall *geminiCall `json:"functionCall"`
	SnakeCall    *geminiCall `json:"function_call"` // as the Python library prints it; OpenAI's deprecated call has the same key
}

type geminiCall struct {
	ID        callID          `json:"id"`
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args"`
	Arguments json.RawMessage `json:"arguments"` // OpenAI's
}

// isOpenAI tells the two calls that share a key apart.
func (c *geminiCall) isOpenAI() bool { return c != nil && c.Args == nil && c.Arguments != nil }

type plainCall struct {
	ID        callID          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// decode reads the calls of a body, in the format that was asked for or, if want is nil, in the one that it has.
func decode(raw []byte, want *format) (*batch, *tool.Error) {
	if !utf8.Valid(raw) { // what is no character would reach the tool as another one
		return nil, tool.Errorf(tool.BadRequest, "the body is not UTF-8; send JSON as RFC 8259 has it")
	}
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
	case b == nil || want != nil && want.name != b.format.name && !(want == &mcp && b.format == &plain):
		return nil, tool.Errorf(tool.BadRequest, "the body holds no calls in the format %q", want.name)
	case len(b.calls) > maxCalls:
		return nil, tool.Errorf(tool.BadRequest, "%d calls in one request; send at most %d", len(b.calls), maxCalls)
	}
	return b, nil
}

func notJSON(err error) *tool.Error { return unreadable("the body", err) }

// unreadable says why what cannot be read, in the words of JSON and not of this program's types.
func unreadable(what string, err error) *tool.Error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return tool.Errorf(tool.BadRequest, "%s is not JSON: %w", what, err)
	case wrong.Field == "":
		return tool.Errorf(tool.BadRequest, "%s must be an object or a list of objects; there is a JSON %s in its place", what, wrong.Value)
	default:
		field := strings.TrimPrefix(strings.TrimPrefix(wrong.Field, "responsesItem."), "geminiPart.")
		return tool.Errorf(tool.BadRequest, "%s is of no known shape: %s cannot be a JSON %s", what, field, wrong.Value)
	}
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
	if len(e.Choices) > 0 && e.ToolCalls == nil {
		message := &e.Choices[0].Message
		e.ToolCalls = message.ToolCalls
		if e.SnakeCall == nil && message.SnakeCall.isOpenAI() {
			e.SnakeCall = message.SnakeCall
		}
	}
	if len(e.Candidates) > 0 {
		e.Parts = e.Candidates[0].Content.Parts
	}
	if e.Type == "function_call" {
		e.Output = []entry[responsesItem]{{v: e.responsesItem}}
	}
	b := &batch{}
	switch {
	case e.ToolCalls != nil:
		b.format = &openAI
		for _, c := range *e.ToolCalls {
			b.add(c.v.ID, c.v.Function.Name, c.v.Function.Arguments, c.err)
		}
		return b
	case e.SnakeCall.isOpenAI():
		b.format = &openAIFunction
		b.add("", e.SnakeCall.Name, e.SnakeCall.Arguments, nil)
		return b
	case e.FunctionCall != nil || e.SnakeCall != nil:
		e.Parts = []entry[geminiPart]{{v: e.geminiPart}}
	}
	for _, item := range e.Output {
		if item.v.Type == "function_call" {
			b.format = &openAIResponses
			b.add(item.v.CallID, item.v.Name, item.v.Arguments, item.err)
		}
	}
	var blocks []entry[anthropicBlock]
	if b.format == nil && json.Unmarshal(e.Content, &blocks) == nil {
		for _, block := range blocks {
			if block.v.Type == "tool_use" {
				b.format = &anthropic
				b.add(block.v.ID, block.v.Name, block.v.Input, block.err)
			}
		}
	}
	for _, part := range e.Parts {
		c := part.v.FunctionCall
		if c == nil {
			c = part.v.SnakeCall
		}
		if c != nil && (b.format == nil || b.format == &gemini) {
			b.format = &gemini
			b.add(c.ID, c.Name, c.Args, part.err)
		}
	}
	switch {
	case b.format != nil:
	case e.Calls != nil:
		b.format = &plain
		for _, c := range *e.Calls {
			b.add(c.v.ID, c.v.Name, c.v.Arguments, c.err)
		}
	case e.Name != "":
		b.format, b.single = &plain, true
		b.add("", e.Name, e.Arguments, nil)
	default:
		return nil
	}
	return b
}

// add takes a call in, or what is wrong with it. Arguments are an object, or its JSON as text, as OpenAI sends them;
// nothing and null are no arguments.
func (b *batch) add(id callID, name string, arguments json.RawMessage, err error) {
	c := call{id: string(id), name: name}
	arguments = bytes.TrimSpace(arguments)
	var text string
	if len(arguments) > 0 && arguments[0] == '"' && json.Unmarshal(arguments, &text) == nil {
		arguments = bytes.TrimSpace([]byte(text))
	}
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	switch {
	case err != nil:
		c.err = unreadable("this call", err)
	case name == "":
		c.err = tool.Errorf(tool.BadRequest, "the call names no tool")
	case !json.Valid(arguments) || arguments[0] != '{':
		c.err = tool.Errorf(tool.BadRequest, "the arguments of %s are not a JSON object; send them again, complete", frontend.Clip(name, tool.MaxName))
	default:
		c.arguments = json.RawMessage(arguments)
	}
	b.calls = append(b.calls, c)
}
