package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/hermesd/hermesd/hooks/webhook"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Action is what a hook wants with a call.
type Action string

// The actions. An answer without one allows.
const (
	Allow  Action = "allow"
	Modify Action = "modify"
	Ask    Action = "ask"
	Block  Action = "block"
)

// maxMessage bounds a hook's message, in bytes: an agent reads it.
const maxMessage = 2048

// Answer is what one hook said.
type Answer struct {
	Action  Action
	Message string // why, for the agent and the human
	// Args are merged into the call's arguments, key by key ([Modify] of a call).
	Args map[string]json.RawMessage
	// Result takes the place of the call's result ([Modify] of a result).
	Result *tool.Result
	// RuleKey names the reason of an [Ask], so that a grant can be bound to it.
	RuleKey string
}

// strictness orders the actions: the strictest of several counts.
var strictness = map[Action]int{Allow: 0, Modify: 1, Ask: 2, Block: 3}

// decisions are the words of the older shape {"decision": …, "reason": …}, which many hook scripts speak.
var decisions = map[string]Action{"": Allow, "approve": Allow, "allow": Allow, "ask": Ask, "block": Block, "deny": Block}

// MaxAnswer bounds a hook's answer, whatever brings it, in bytes.
const MaxAnswer = webhook.MaxAnswer

// ParseAnswer reads a hook's answer: nothing, or one JSON object of at most [MaxAnswer]. Keys that it does not know are left
// alone.
func ParseAnswer(raw []byte) (Answer, error) {
	if len(raw) > MaxAnswer {
		return Answer{}, fmt.Errorf("the answer has more than %d bytes", MaxAnswer)
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return Answer{Action: Allow}, nil
	}
	var a struct {
		Action   Action                     `json:"action"`
		Message  string                     `json:"message"`
		Args     map[string]json.RawMessage `json:"args"`
		Result   json.RawMessage            `json:"result"`
		RuleKey  string                     `json:"rule_key"`
		Decision string                     `json:"decision"`
		Reason   string                     `json:"reason"`
	}
	if raw[0] != '{' {
		return Answer{}, errors.New("the answer is no JSON object")
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return Answer{}, fmt.Errorf("the answer is not the JSON of a decision: %w", err)
	}
	if a.Action == "" {
		a.Action = Allow
	}
	older, ok := decisions[a.Decision]
	if !ok {
		return Answer{}, fmt.Errorf("the answer's decision is %q, which is none; use \"block\"", clip(a.Decision))
	}
	rank, ok := strictness[a.Action]
	if !ok {
		return Answer{}, fmt.Errorf("the answer's action is %q; use allow, block, modify or ask", clip(string(a.Action)))
	}
	if strictness[older] > rank {
		a.Action = older
	}
	if a.Message == "" {
		a.Message = a.Reason
	}
	out := Answer{Action: a.Action, Message: clip(a.Message), RuleKey: clip(a.RuleKey)}
	if a.Action != Modify {
		return out, nil
	}
	out.Args = a.Args
	if len(a.Result) == 0 || string(a.Result) == "null" {
		return out, nil
	}
	var err error
	out.Result, err = parseResult(a.Result)
	return out, err
}

// parseResult reads a replaced result: a text, or a result object as MCP has it.
func parseResult(raw json.RawMessage) (*tool.Result, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return tool.TextResult(text), nil
	}
	r := &tool.Result{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("the answer's result is neither a text nor a result object: %w", err)
	}
	for i, c := range r.Content {
		var block struct{ Type string }
		if json.Unmarshal(c, &block) != nil || block.Type == "" {
			return nil, fmt.Errorf("block %d of the answer's result has no type", i)
		}
	}
	return r, nil
}

func clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return string(bytes.ToValidUTF8([]byte(s[:maxMessage]), nil)) + "…"
}

// merge lays changes over a JSON object: a shallow merge.
func merge(object json.RawMessage, changes map[string]json.RawMessage) (json.RawMessage, error) {
	if len(changes) == 0 {
		return object, nil
	}
	var o map[string]json.RawMessage
	if err := json.Unmarshal(object, &o); err != nil {
		return nil, err
	}
	if o == nil {
		o = map[string]json.RawMessage{}
	}
	maps.Copy(o, changes)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(o); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
