package pluginsdk

import (
	"bytes"
	"encoding/json"
	"fmt"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// Content is one block of a result: the JSON object that MCP calls ContentBlock.
type Content json.RawMessage

// MarshalJSON implements [json.Marshaler].
func (c Content) MarshalJSON() ([]byte, error) { return json.RawMessage(c).MarshalJSON() }

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Content) UnmarshalJSON(b []byte) error {
	*c = append((*c)[:0], b...)
	return nil
}

// Text makes a text block.
func Text(s string) Content {
	return block(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", s})
}

// Image makes an image block of raw image bytes.
func Image(mimeType string, data []byte) Content { return media("image", mimeType, data) }

// Audio makes an audio block of raw audio bytes.
func Audio(mimeType string, data []byte) Content { return media("audio", mimeType, data) }

func media(kind, mimeType string, data []byte) Content {
	return block(struct {
		Type     string `json:"type"`
		Data     []byte `json:"data"` // encoding/json writes base64, as the protocol asks
		MIMEType string `json:"mimeType"`
	}{kind, data, mimeType})
}

type resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     []byte  `json:"blob,omitempty"`
}

func embedded(r resource) Content {
	return block(struct {
		Type     string   `json:"type"`
		Resource resource `json:"resource"`
	}{"resource", r})
}

// Resource makes an embedded resource block that holds text.
func Resource(uri, mimeType, text string) Content {
	return embedded(resource{URI: uri, MIMEType: mimeType, Text: &text})
}

// BlobResource makes an embedded resource block that holds bytes.
func BlobResource(uri, mimeType string, data []byte) Content {
	return embedded(resource{URI: uri, MIMEType: mimeType, Blob: data})
}

// Link points at a resource that the result does not hold.
type Link struct {
	URI         string `json:"uri"`  // must be set
	Name        string `json:"name"` // must be set
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
	Size        int64  `json:"size,omitempty"` // bytes; 0: unknown
}

// ResourceLink makes a block that points at a resource.
func ResourceLink(l Link) Content {
	return block(struct {
		Type string `json:"type"`
		Link
	}{"resource_link", l})
}

// block marshals a value that cannot fail to marshal.
func block(v any) Content {
	raw, err := compact(v)
	if err != nil {
		panic("pluginsdk: content of plain strings and bytes did not marshal: " + err.Error())
	}
	return Content(raw)
}

// compact marshals without HTML escapes: models read these bytes.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// Result is a result in full, for tools whose answer is more than one Go value: several blocks, images, a failure that
// the model should see as the tool's own answer. A handler returns *Result as its output type.
type Result struct {
	Content []Content
	// Structured is the same answer as a value, marshalled to JSON; nil if there is none.
	Structured any
	// IsError says that the tool ran and failed at its task.
	IsError bool
	// Meta are further keys for the agent (MCP's _meta).
	Meta map[string]any
}

// TextResult is a result of one text block.
func TextResult(format string, args ...any) *Result {
	return &Result{Content: []Content{Text(fmt.Sprintf(format, args...))}}
}

func (r *Result) proto() (*pb.Result, error) {
	p := &pb.Result{IsError: r.IsError, Content: make([][]byte, len(r.Content))}
	for i, c := range r.Content {
		if !json.Valid(c) {
			return nil, fmt.Errorf("content block %d is no JSON", i)
		}
		p.Content[i] = c
	}
	var err error
	if r.Structured != nil {
		if p.Structured, err = compact(r.Structured); err != nil {
			return nil, fmt.Errorf("the structured result cannot be encoded: %w", err)
		}
	}
	if r.Meta != nil {
		if p.Meta, err = compact(r.Meta); err != nil {
			return nil, fmt.Errorf("the result's meta cannot be encoded: %w", err)
		}
	}
	return p, nil
}

func resultFromProto(p *pb.Result) (*Result, error) {
	r := &Result{IsError: p.GetIsError()}
	for _, c := range p.GetContent() {
		r.Content = append(r.Content, Content(c))
	}
	if len(p.GetStructured()) > 0 {
		r.Structured = json.RawMessage(p.GetStructured())
	}
	if len(p.GetMeta()) > 0 {
		if err := json.Unmarshal(p.GetMeta(), &r.Meta); err != nil {
			return nil, fmt.Errorf("the result's meta is no JSON object: %w", err)
		}
	}
	return r, nil
}
