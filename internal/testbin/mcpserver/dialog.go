package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A dialog is a tool that needs answers first. It asks by its result; for clients of older protocols the SDK turns that
// into requests (SEP-2322).

// answers are what a client brought back.
type answers mcp.InputResponseMap

// accepted is one field of a form that the human accepted, or nil.
func (a answers) accepted(id, field string) any {
	if r, ok := a[id].(*mcp.ElicitResult); ok && r.Action == "accept" {
		return r.Content[field]
	}
	return nil
}

func (a answers) name(id string) string {
	name, _ := a.accepted(id, "name").(string)
	return name
}

func (a answers) sampled(id string) (string, bool) {
	r, ok := a[id].(*mcp.CreateMessageWithToolsResult)
	if !ok {
		return "", false
	}
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			return t.Text, true
		}
	}
	return "", true
}

func (a answers) roots(id string) (int, bool) {
	//lint:ignore SA1019 the suite asks for roots
	r, ok := a[id].(*mcp.ListRootsResult)
	if !ok {
		return 0, false
	}
	return len(r.Roots), true
}

// requests build questions.
func form(message, schema string) mcp.InputRequest {
	return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(schema)}
}

func prompt(message string) mcp.InputRequest {
	//lint:ignore SA1019 the suite asks for sampling
	return &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: message}}}}
}

const (
	nameForm    = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	colorForm   = `{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`
	confirmForm = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`
	userForm    = `{"type":"object","properties":{"username":{"type":"string","description":"Your name"},"email":{"type":"string","description":"Your address"}},"required":["username","email"]}`
	contextForm = `{"type":"object","properties":{"context":{"type":"string"}},"required":["context"]}`
	// Defaults of every plain type (SEP-1034).
	defaultsForm = `{"type":"object","properties":{
		"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
		"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`
	// Every kind of choice (SEP-1330).
	enumForm = `{"type":"object","properties":{
		"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`
)

// dialog asks until done is satisfied.
type dialog struct {
	requests mcp.InputRequestMap
	state    string
	done     func(a answers) (string, bool)
}

func (d *dialog) handle(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if said, ok := d.done(answers(r.Params.InputResponses)); ok && (d.state == "" || r.Params.RequestState == d.state) {
		return text("%s", said), nil
	}
	return &mcp.CallToolResult{InputRequests: d.requests, RequestState: d.state}, nil
}

// anyAnswer is done with whatever the human did.
func anyAnswer(a answers) (string, bool) {
	r, ok := a["form"].(*mcp.ElicitResult)
	if !ok {
		return "", false
	}
	content, err := json.Marshal(r.Content)
	return fmt.Sprintf("Elicitation completed: action=%s, content=%s", r.Action, content), err == nil
}

func confirmed(a answers) (string, bool) {
	return "state-ok", a.accepted("confirm", "ok") != nil
}

func addDialogs(s *mcp.Server) {
	for name, d := range map[string]*dialog{
		"test_elicitation_sep1034_defaults": {requests: mcp.InputRequestMap{"form": form("Defaults", defaultsForm)}, done: anyAnswer},
		"test_elicitation_sep1330_enums":    {requests: mcp.InputRequestMap{"form": form("Choices", enumForm)}, done: anyAnswer},
		"test_input_required_result_elicitation": {
			requests: mcp.InputRequestMap{"user_name": form("What is your name?", nameForm)},
			done:     func(a answers) (string, bool) { n := a.name("user_name"); return "Hello, " + n + "!", n != "" },
		},
		"test_input_required_result_sampling": {requests: mcp.InputRequestMap{"capital_question": prompt("What is the capital of France?")}, done: func(a answers) (string, bool) { return a.sampled("capital_question") }},
		"test_input_required_result_list_roots": {
			requests: mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}},
			done: func(a answers) (string, bool) {
				n, ok := a.roots("client_roots")
				return fmt.Sprintf("%d roots", n), ok
			},
		},
		"test_input_required_result_request_state":  {requests: mcp.InputRequestMap{"confirm": form("Please confirm", confirmForm)}, state: "kept", done: confirmed},
		"test_input_required_result_tampered_state": {requests: mcp.InputRequestMap{"confirm": form("Please confirm", confirmForm)}, state: "sealed", done: confirmed},
		"test_input_required_result_multiple_inputs": {
			requests: mcp.InputRequestMap{"user_name": form("What is your name?", nameForm), "greeting": prompt("Greet"), "client_roots": &mcp.ListRootsParams{}},
			state:    "three",
			done: func(a answers) (string, bool) {
				greeting, greeted := a.sampled("greeting")
				n, listed := a.roots("client_roots")
				return fmt.Sprintf("%s %s, %d roots", greeting, a.name("user_name"), n), greeted && listed && a.name("user_name") != ""
			},
		},
	} {
		add(s, name, noArguments, d.handle)
	}
	add(s, "test_elicitation", `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`, said("message", func(m string) mcp.InputRequest { return form(m, userForm) }, anyAnswer))
	add(s, "test_sampling", `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`, said("prompt", prompt, func(a answers) (string, bool) {
		answer, ok := a.sampled("form")
		return "LLM response: " + answer, ok
	}))
	add(s, "test_input_required_result_multi_round", noArguments, rounds)
	add(s, "test_input_required_result_capabilities", noArguments, capable)
}

// said is a dialog that asks with the words of an argument.
func said(key string, ask func(string) mcp.InputRequest, done func(answers) (string, bool)) handler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var args map[string]string
		if json.Unmarshal(r.Params.Arguments, &args) != nil {
			return nil, errArguments
		}
		d := &dialog{requests: mcp.InputRequestMap{"form": ask(args[key])}, done: done}
		return d.handle(ctx, r)
	}
}

// rounds asks twice; the state knows how far it is, and the first answer.
func rounds(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := answers(r.Params.InputResponses)
	name, second := strings.CutPrefix(r.Params.RequestState, "second:")
	switch {
	case second:
		return text("%s likes %v", name, a.accepted("step2", "color")), nil
	case r.Params.RequestState == "first":
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"step2": form("What color?", colorForm)}, RequestState: "second:" + a.name("step1")}, nil
	default:
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"step1": form("What is your name?", nameForm)}, RequestState: "first"}, nil
	}
}

// capable asks for what the client declared, and nothing else.
func capable(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if len(r.Params.InputResponses) > 0 {
		return text("answered"), nil
	}
	requests := mcp.InputRequestMap{}
	if can := r.ClientCapabilities(); can != nil {
		if can.Elicitation != nil {
			requests["user_name"] = form("What is your name?", nameForm)
		}
		if can.Sampling != nil {
			requests["greeting"] = prompt("Greet")
		}
		if can.RootsV2 != nil {
			requests["client_roots"] = &mcp.ListRootsParams{}
		}
	}
	if len(requests) == 0 {
		return text("the client can be asked for nothing"), nil
	}
	return &mcp.CallToolResult{InputRequests: requests}, nil
}
