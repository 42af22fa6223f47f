package bridge

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hermesd/hermesd/runtime/tool"
)

const maxCalls = 10 // entries of one tool_call

// callExample is the canonical shape, for refusals.
const callExample = `{"calls": [{"name": "mcp__github__create_issue", "arguments": {"title": "…"}}]}`

// entry is one call that an agent wants.
type entry struct {
	name      string
	arguments json.RawMessage // a JSON object
	via       tool.Via
}

// parseCalls reads the arguments of a tool_call in every shape that models send. A refusal means that nothing may run; it
// names places and never repeats what stands there.
func (c *Caller) parseCalls(args json.RawMessage) ([]entry, *tool.Error) {
	keys, refusal := object(args)
	if refusal != nil {
		return nil, refusal
	}
	list, refusal := callList(keys)
	if refusal != nil {
		return nil, refusal
	}
	if len(list) > maxCalls {
		return nil, tool.Errorf(tool.BadRequest, "%d calls are too many; send at most %d at once", len(list), maxCalls)
	}
	entries := make([]entry, len(list))
	for i, keys := range list {
		if entries[i], refusal = c.parseEntry(fmt.Sprintf("calls[%d]", i), keys); refusal != nil {
			refusal.Pointer = fmt.Sprintf("/calls/%d%s", i, refusal.Pointer)
			return nil, refusal
		}
	}
	return entries, nil
}

// callList finds the entries in a request's keys.
func callList(keys map[string]json.RawMessage) ([]map[string]json.RawMessage, *tool.Error) {
	calls := first(keys, "calls")
	if calls == nil {
		if first(keys, "name", "tool") == nil {
			return nil, tool.Errorf(tool.BadRequest, "there are no calls and no name; send %s", callExample)
		}
		return []map[string]json.RawMessage{keys}, nil
	}
	if text, ok := asText(calls); ok {
		parsed, err := value([]byte(text))
		if err != nil {
			return nil, tool.Errorf(tool.BadRequest, "nothing was run: the text in calls is %w", err)
		}
		// Some send the whole request as the text.
		if inner, ok := asObject(parsed); ok && first(inner, "calls") != nil {
			parsed = first(inner, "calls")
		}
		calls = parsed
	}
	if one, ok := asObject(calls); ok {
		return []map[string]json.RawMessage{one}, nil
	}
	items, ok := asList(calls)
	switch {
	case !ok && calls != nil:
		return nil, tool.Errorf(tool.BadRequest, "calls must be a list, not %s; send %s", kind(calls), callExample)
	case len(items) == 0:
		return nil, tool.Errorf(tool.BadRequest, "calls is empty; send %s", callExample)
	}
	list := make([]map[string]json.RawMessage, len(items))
	for i, raw := range items {
		if list[i], ok = asObject(raw); !ok {
			return nil, tool.Errorf(tool.BadRequest, "nothing was run: calls[%d] must be an object, not %s; send %s", i, kind(raw), callExample)
		}
	}
	return list, nil
}

func (c *Caller) parseEntry(at string, keys map[string]json.RawMessage) (entry, *tool.Error) {
	name, _ := asText(first(keys, "name", "tool"))
	name = strings.TrimSpace(name)
	if name == "" {
		return entry{}, tool.Errorf(tool.BadRequest, "nothing was run: %s has no name; send %s", at, callExample)
	}
	if _, ok := c.Names.Kind(name); ok {
		return entry{}, tool.Errorf(tool.BadRequest, "nothing was run: %s names a bridge tool, and those are called directly, not through %s", at, c.Names.OrDefault().Call)
	}
	arguments, err := toolArguments(first(keys, "arguments", "parameters", "args"))
	if err != nil {
		refusal := tool.Errorf(tool.BadRequest, "nothing was run: the arguments of %s are %w", at, err)
		refusal.Pointer = "/arguments"
		return entry{}, refusal
	}
	return entry{name, arguments, tool.ViaBridge}, nil
}

// toolArguments reads a tool's own arguments, which were checked: an object, JSON text of one, or nothing. The error says
// what they are.
func toolArguments(raw json.RawMessage) (json.RawMessage, error) {
	if text, ok := asText(raw); ok {
		var err error
		if raw, err = value([]byte(text)); err != nil {
			return nil, err
		}
	}
	if raw == nil {
		return json.RawMessage("{}"), nil
	}
	if raw[0] != '{' {
		return nil, fmt.Errorf("%s and must be an object", kind(raw))
	}
	return raw, nil
}
