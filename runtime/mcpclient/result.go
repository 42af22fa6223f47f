package mcpclient

import (
	"encoding/json"
	"errors"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// outcome is the result of tools/call: what the tool gave, or what the server needs before it goes on (2026-07-28,
// multi round-trip requests).
type outcome struct {
	result tool.Result
	raw    json.RawMessage           // of a resource, a prompt or a completion, instead of result
	inputs map[string]provider.Input // nil unless the server needs input
	state  json.RawMessage           // given back with the input; nil if absent
	task   *taskState                // nil unless the server goes on with the call as a task
}

// readResult takes a result apart without decoding what is in it.
func readResult(raw json.RawMessage) (*outcome, error) {
	o := &outcome{}
	var content, isError, inputs json.RawMessage
	needsInput, isTask := false, false
	if !rawjson.Members(raw, func(key string, value json.RawMessage) {
		switch key {
		case "content":
			content = value
		case "structuredContent":
			if !rawjson.IsNull(value) {
				o.result.Structured = value
			}
		case "isError":
			isError = value
		case "_meta":
			o.result.Meta = withoutReserved(value)
		case "resultType":
			needsInput, isTask = string(value) == `"input_required"`, string(value) == `"task"`
		case "inputRequests":
			inputs = value
		case "requestState":
			o.state = value
		}
	}) {
		return nil, errors.New("the result is no JSON object")
	}
	if isTask {
		var err error
		o.task, err = readTask(raw)
		return o, err
	}
	if needsInput || inputs != nil {
		return o, o.readInputs(inputs)
	}
	if isError != nil && string(isError) != "true" && string(isError) != "false" {
		return nil, errors.New("isError of the result is not a boolean")
	}
	o.result.IsError = string(isError) == "true"
	if rawjson.IsNull(content) {
		if o.result.Structured == nil {
			return nil, errors.New("the result has neither content nor structuredContent")
		}
		o.result.Content = []tool.Content{}
		return o, nil
	}
	objects := true
	isArray := rawjson.Elements(content, func(block json.RawMessage) {
		objects = objects && block[0] == '{'
		o.result.Content = append(o.result.Content, tool.Content(block))
	})
	if !isArray || !objects {
		return nil, errors.New("content of the result is no array of objects")
	}
	if o.result.Content == nil {
		o.result.Content = []tool.Content{}
	}
	return o, nil
}
