package functions

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hermesd/hermesd/runtime/tool"
)

// block is a content block as far as models' APIs can show it.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"` // base64
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
		Blob string `json:"blob"`
	} `json:"resource"`
}

// blocksOf reads a result's content. A result that has structured content only shows that as text.
func blocksOf(r *tool.Result) []block {
	list := make([]block, 0, len(r.Content))
	for _, c := range r.Content {
		var b block
		if err := json.Unmarshal(c, &b); err != nil {
			b = block{Type: "text", Text: "[a part of the result that is no JSON was left out]"}
		}
		list = append(list, b)
	}
	if len(list) == 0 && len(r.Structured) > 0 {
		list = append(list, block{Type: "text", Text: string(r.Structured)})
	}
	return list
}

func hasImage(blocks []block) bool {
	for _, b := range blocks {
		if b.isImage() {
			return true
		}
	}
	return false
}

func (b *block) isImage() bool { return b.Type == "image" && b.Data != "" }

// asText is the block for a place that takes text only. What cannot be shown there is named, never dropped in silence.
func (b *block) asText() string {
	switch b.Type {
	case "text":
		return b.Text
	case "resource":
		if b.Resource.Text != "" {
			return b.Resource.Text
		}
		return fmt.Sprintf("[resource %s: %d bytes of base64, not shown here]", b.Resource.URI, len(b.Resource.Blob))
	case "resource_link":
		return strings.TrimSpace(fmt.Sprintf("[%s] %s", b.Name, b.URI))
	default:
		return fmt.Sprintf("[%s %s: %d bytes of base64, not shown here]", b.Type, b.MIMEType, len(b.Data))
	}
}

// textOf is a whole result as text.
func textOf(r *tool.Result) string {
	blocks := blocksOf(r)
	parts := make([]string, len(blocks))
	for i := range blocks {
		parts[i] = blocks[i].asText()
	}
	return strings.Join(parts, "\n")
}

// wire is a result that marshals whatever its provider sent.
func wire(r *tool.Result) *tool.Result {
	w := *r
	w.Content = make([]tool.Content, len(r.Content))
	for i, c := range r.Content {
		if w.Content[i] = c; !json.Valid(c) {
			w.Content[i] = tool.Text("[a part of the result that is no JSON was left out]")
		}
	}
	if len(w.Structured) > 0 && !json.Valid(w.Structured) {
		w.Structured = nil
	}
	if len(w.Meta) > 0 && !json.Valid(w.Meta) {
		w.Meta = nil
	}
	return &w
}
