package store

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Definition is what an operator agrees to when accepting a tool: everything that a model reads of it or that decides how
// it may be used. Its JSON is canonical: what a provider writes in another order or layout is the same.
type Definition struct {
	Name         string            `json:"name"` // the provider's own
	Toolset      string            `json:"toolset,omitempty"`
	Title        string            `json:"title,omitempty"`
	Description  string            `json:"description,omitempty"`
	InputSchema  json.RawMessage   `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage   `json:"output_schema,omitempty"`
	Annotations  tool.Annotations  `json:"annotations"`
	Keywords     []string          `json:"keywords,omitempty"`
	Examples     []json.RawMessage `json:"examples,omitempty"`
	RequiresEnv  []string          `json:"requires_env,omitempty"`
}

// Of is what of a tool is agreed to, with its digest.
func Of(d *tool.Definition) (*Definition, string, error) {
	def := &Definition{
		Name: d.OwnName, Toolset: d.Toolset, Title: d.Title, Description: d.Description, Annotations: d.Annotations,
		Keywords: d.Keywords, RequiresEnv: d.RequiresEnv,
	}
	var err error
	if def.InputSchema, err = canonical(d.InputSchema); err != nil {
		return nil, "", fmt.Errorf("input schema: %w", err)
	}
	if def.OutputSchema, err = canonical(d.OutputSchema); err != nil {
		return nil, "", fmt.Errorf("output schema: %w", err)
	}
	for n, e := range d.Examples {
		one, err := canonical(e)
		if err != nil {
			return nil, "", fmt.Errorf("example %d: %w", n+1, err)
		}
		def.Examples = append(def.Examples, one)
	}
	digest, err := def.digest()
	return def, digest, err
}

func (d *Definition) digest() (string, error) {
	raw, err := marshal(d)
	if err != nil {
		return "", err
	}
	return digestOf(raw), nil
}

// canonical sorts the keys of JSON and leaves its numbers as they are written.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	return marshal(value)
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
