package redact

import (
	"bytes"
	"encoding/json"
	"strings"
)

// JSON masks JSON text. What masking leaves is JSON: where a secret was part of a number or the like, the masked text as a
// string.
func JSON(raw json.RawMessage, mask func(string) string) json.RawMessage {
	text := string(raw)
	masked := mask(text)
	switch {
	case masked == text:
		return raw
	case json.Valid([]byte(masked)):
		return json.RawMessage(masked)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(strings.ToValidUTF8(masked, "\uFFFD")); err != nil {
		panic("redact: a text did not marshal: " + err.Error())
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
