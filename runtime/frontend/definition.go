package frontend

import (
	"bytes"
	"encoding/json"

	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Definition is a tool as MCP's Tool object, as compact JSON. It fails for icons or metadata that are no JSON.
func Definition(t *disclosure.Tool) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Name         string          `json:"name"`
		Title        string          `json:"title,omitempty"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Annotations  *annotations    `json:"annotations,omitempty"`
		Icons        json.RawMessage `json:"icons,omitempty"`
		Meta         json.RawMessage `json:"_meta,omitempty"`
	}{t.Name, t.Title, t.Description, t.InputSchema, t.OutputSchema, hints(t.Annotations), t.Icons, t.Meta})
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// annotations are MCP's ToolAnnotations. What the author left unsaid stays unsaid.
type annotations struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  *bool `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

func hints(a tool.Annotations) *annotations {
	if a.ReadOnly == nil && a.Destructive == nil && a.Idempotent == nil && a.OpenWorld == nil {
		return nil
	}
	return &annotations{a.ReadOnly, a.Destructive, a.Idempotent, a.OpenWorld}
}
