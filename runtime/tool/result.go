package tool

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Content is one block of a result, as the JSON object that MCP calls ContentBlock (text, image, audio, resource,
// resource_link). It is kept as bytes so that what a provider sent reaches the agent unchanged.
type Content json.RawMessage

// Text makes a text block.
func Text(s string) Content {
	return encode(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", s})
}

// Image makes an image block; data is the raw image.
func Image(mimeType string, data []byte) Content { return media("image", mimeType, data) }

// Audio makes an audio block; data is the raw audio.
func Audio(mimeType string, data []byte) Content { return media("audio", mimeType, data) }

func media(kind, mimeType string, data []byte) Content {
	return encode(struct {
		Type     string `json:"type"`
		Data     []byte `json:"data"` // encoding/json writes base64, as the protocol asks
		MIMEType string `json:"mimeType"`
	}{kind, data, mimeType})
}

// encode marshals a value that cannot fail to marshal, without HTML escapes: agents read these bytes.
func encode(v any) Content {
	raw, err := JSON(v)
	if err != nil {
		panic("tool: content of plain strings and bytes did not marshal: " + err.Error())
	}
	return Content(raw)
}

// JSON is compact JSON for agents to read: without HTML escapes.
func JSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// MarshalJSON implements [json.Marshaler].
func (c Content) MarshalJSON() ([]byte, error) { return json.RawMessage(c).MarshalJSON() }

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Content) UnmarshalJSON(b []byte) error {
	*c = append((*c)[:0], b...)
	return nil
}

// AsText returns the text of a text block, and whether it is one.
func (c Content) AsText() (string, bool) {
	var t struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(c, &t) != nil || t.Type != "text" {
		return "", false
	}
	return t.Text, true
}

// Result is what a call gave back. A tool that failed at its own task answers with IsError set; an [*Error] means that
// the call itself went wrong.
type Result struct {
	Content    []Content       `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"` // any JSON value; nil if the tool has none
	IsError    bool            `json:"isError,omitempty"`
	Meta       json.RawMessage `json:"_meta,omitempty"` // a JSON object; nil if none
}

// TextResult is a result of one text block.
func TextResult(s string) *Result { return &Result{Content: []Content{Text(s)}} }

// Text joins the result's text blocks with newlines; other blocks are left out.
func (r *Result) Text() string {
	var parts []string
	for _, c := range r.Content {
		if t, ok := c.AsText(); ok {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, "\n")
}

// Size is the number of bytes that the result's parts hold, which result limits are measured against.
func (r *Result) Size() int {
	n := len(r.Structured) + len(r.Meta)
	for _, c := range r.Content {
		n += len(c)
	}
	return n
}
