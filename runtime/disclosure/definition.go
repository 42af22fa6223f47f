package disclosure

import (
	"bytes"
	"encoding/json"
)

// alwaysLoadKey tells clients that defer tools by themselves to keep this one in view.
const alwaysLoadKey = "anthropic/alwaysLoad"

const alwaysLoadMeta = `{"` + alwaysLoadKey + `":true}`

// alwaysLoad adds the mark to a tool's own _meta.
func alwaysLoad(meta json.RawMessage) json.RawMessage {
	var keys map[string]json.RawMessage
	if json.Unmarshal(meta, &keys) != nil || len(keys) == 0 {
		return json.RawMessage(alwaysLoadMeta)
	}
	keys[alwaysLoadKey] = json.RawMessage("true")
	return encode(keys, alwaysLoadMeta)
}

// objectSchema returns a schema whose type is "object" and nothing else, as MCP and every model API ask of an input
// schema. Nearly all are returned as they are.
func objectSchema(raw json.RawMessage) json.RawMessage {
	var s struct {
		Type json.RawMessage `json:"type"`
	}
	if json.Unmarshal(raw, &s) == nil && string(s.Type) == `"object"` {
		return raw
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(raw, &keys) != nil || keys == nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	keys["type"] = json.RawMessage(`"object"`)
	return encode(keys, `{"type":"object"}`)
}

// outputSchema returns a schema that MCP allows to be announced, which is one of type "object"; nil for any other.
func outputSchema(raw json.RawMessage) json.RawMessage {
	var s struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &s) != nil || s.Type != "object" {
		return nil
	}
	return raw
}

// sound returns raw if it is JSON: one provider's slip must not spoil the list for all others.
func sound(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return nil
	}
	return raw
}

// encode marshals an object with its keys in order and no HTML escapes; orElse stands in for what cannot be marshalled.
func encode(keys map[string]json.RawMessage, orElse string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(keys); err != nil {
		return json.RawMessage(orElse)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
