package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/tool"
)

// The bounds of what is read.
const (
	maxInput   = 8 << 20 // bytes of a request's arguments: a whole file may be one of them
	maxNesting = 128     // levels of arrays and objects
	maxName    = 256     // bytes of a tool's name; no full name is longer than tool.MaxName
)

// object reads a request's arguments. Models that send them as JSON text, or send none, are understood.
func object(args json.RawMessage) (map[string]json.RawMessage, *tool.Error) {
	raw, err := value(args)
	if err != nil {
		return nil, tool.Errorf(tool.BadRequest, "the arguments are %w", err)
	}
	if text, ok := asText(raw); ok {
		if raw, err = value([]byte(text)); err != nil {
			return nil, tool.Errorf(tool.BadRequest, "the arguments are %w", err)
		}
	}
	if raw == nil {
		return map[string]json.RawMessage{}, nil
	}
	keys, ok := asObject(raw)
	if !ok {
		return nil, tool.Errorf(tool.BadRequest, "the arguments must be a JSON object, not %s", kind(raw))
	}
	return keys, nil
}

// value checks JSON text from outside and repairs it if it can. It returns nil for blank text and for null, and says what
// the text is otherwise: "not JSON: …".
func value(text []byte) (json.RawMessage, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	if len(text) > maxInput {
		return nil, fmt.Errorf("too large: %d bytes, and %d are the limit", len(text), maxInput)
	}
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	if nesting(text) > maxNesting {
		return nil, fmt.Errorf("nested too deeply: %d levels are the limit", maxNesting)
	}
	if json.Valid(text) {
		return text, nil
	}
	return repair(text)
}

// nesting is how deep arrays and objects stand in one another, in text that may be no JSON.
func nesting(text []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			end, _ := stringEnd(text, i)
			i = end - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// asObject, asText and asList read a value of a text that was checked as a whole.

func asObject(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	keys := map[string]json.RawMessage{}
	ok := rawjson.Members(raw, func(key string, value json.RawMessage) { keys[key] = value })
	return keys, ok
}

func asText(raw json.RawMessage) (string, bool) { return rawjson.String(raw) }

func asList(raw json.RawMessage) (list []json.RawMessage, ok bool) {
	ok = rawjson.Elements(raw, func(value json.RawMessage) { list = append(list, value) })
	return list, ok
}

// kind names the type of a JSON value and nothing of what it holds.
func kind(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "text"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// first returns the value of the first key that is there and not null.
func first(keys map[string]json.RawMessage, names ...string) json.RawMessage {
	for _, name := range names {
		if raw := keys[name]; len(raw) > 0 && string(raw) != "null" {
			return raw
		}
	}
	return nil
}

// texts reads a list of texts, or one text as a list of one. Items are trimmed and blank ones dropped.
func texts(keys map[string]json.RawMessage, key, oldKey, example string) ([]string, *tool.Error) {
	raw := first(keys, key, oldKey)
	wanted := func(fault string) *tool.Error {
		err := tool.Errorf(tool.BadRequest, "%s; send %s", fault, example)
		err.Pointer = "/" + key
		return err
	}
	items := []json.RawMessage{raw}
	switch {
	case raw == nil:
		return nil, wanted(fmt.Sprintf("%q is missing", key))
	case raw[0] == '[':
		items, _ = asList(raw)
	case raw[0] != '"':
		return nil, wanted(fmt.Sprintf("%q must be a list of texts, not %s", key, kind(raw)))
	}
	var list []string
	for i, item := range items {
		s, ok := asText(item)
		switch {
		case string(item) == "null":
		case !ok:
			return nil, wanted(fmt.Sprintf("%s[%d] must be text, not %s", key, i, kind(item)))
		case strings.TrimSpace(s) != "":
			list = append(list, strings.TrimSpace(s))
		}
	}
	if len(list) == 0 {
		return nil, wanted(fmt.Sprintf("%q is empty", key))
	}
	return list, nil
}

// unique returns the items of list without repetitions, in order.
func unique(list []string) []string {
	var once []string
	for _, s := range list {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return once
}

func clip(s string) string {
	if len(s) <= maxName {
		return s
	}
	return strings.ToValidUTF8(s[:maxName], "") + "…"
}
