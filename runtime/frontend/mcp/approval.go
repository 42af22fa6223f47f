package mcp

import (
	"encoding/json"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// A call that a human has to approve first does not wait here: nothing of it has run, so the request ends with the
// question and the approval broker's own state, which is sealed and bound to the call. The client's next request is a new
// call that brings the state and the answer along, and would do so after a restart of this front end, too.

// sealed tells the broker's states from those of parked calls: only they have a signature behind a dot.
func sealed(state string) bool { return strings.Contains(state, ".") }

// askFirst is the answer to a call of which nothing ran, because a human is asked first. The payload is the broker's.
func askFirst(payload json.RawMessage) (*tool.Result, *interim) {
	question, err := approvalQuestion(payload)
	if err != nil {
		return err.Result(), nil
	}
	return nil, question
}

// approvalQuestion is the broker's question as a client takes it along.
func approvalQuestion(payload json.RawMessage) (*interim, *tool.Error) {
	var ask struct {
		State   string          `json:"state"`
		Message string          `json:"message"`
		Schema  json.RawMessage `json:"schema"`
	}
	if err := json.Unmarshal(payload, &ask); err != nil {
		return nil, tool.Errorf(tool.Internal, "the question for the human cannot be read: %w", err)
	}
	form := &sdk.ElicitParams{Mode: "form", Message: ask.Message, RequestedSchema: ask.Schema}
	return &interim{requests: sdk.InputRequestMap{questionKey: form}, state: ask.State}, nil
}

// resumed is what the broker gets of a request that brings an answer back; "" if it brings none.
func resumed(state string, responses sdk.InputResponseMap) string {
	if !sealed(state) {
		return ""
	}
	given := provider.Answer{Action: "cancel"} // what a client without an answer means
	if response, ok := responses[questionKey].(*sdk.ElicitResult); ok {
		if a, err := answer(response); err == nil {
			given = a
		}
	}
	raw, err := json.Marshal(struct {
		State   string          `json:"state"`
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content,omitempty"`
	}{state, given.Action, given.Content})
	if err != nil { // the content is no JSON: the broker refuses the state alone
		return state
	}
	return string(raw)
}
