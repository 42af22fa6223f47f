package results

import (
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

var _ provider.Library = (*Tool)(nil)

// template is the resource template by which clients learn of kept results: they are not listed, since only their own
// session can read them.
const template = Scheme + "{id}"

// Shelf implements [provider.Library].
func (t *Tool) Shelf() *provider.Shelf { return t.shelf }

func newShelf() *provider.Shelf {
	raw := json.RawMessage(`{"uriTemplate":"` + template + `","name":"kept result","description":"A result that was too big to be returned whole, for the session that it was returned to.","mimeType":"text/plain"}`)
	return &provider.Shelf{Namespace: Scheme, Closed: true, Templates: []provider.Item{{Name: template, Own: "{id}", Raw: raw}}}
}

// Fetch implements [provider.Library]: it reads a whole result.
func (t *Tool) Fetch(_ context.Context, req *provider.Fetch) (json.RawMessage, error) {
	if req.Method != provider.ReadResource {
		return json.RawMessage(`{"completion":{"values":[]}}`), nil // ids are not told
	}
	var params struct {
		URI string `json:"uri"`
	}
	if err := json.Unmarshal(req.Params, &params); err != nil {
		return nil, tool.Errorf(tool.BadRequest, "the resource's URI cannot be read: %w", err)
	}
	id := strings.TrimPrefix(params.URI, Scheme)
	k, refused := t.store.find(req.Agent, req.Session, id)
	if refused != nil {
		return nil, refused
	}
	text, err := os.ReadFile(t.store.path(k.id))
	if err != nil {
		return nil, tool.Errorf(tool.NotAvailable, "the kept result cannot be read any more; call the tool again").WithDetail("%v", err)
	}
	return tool.JSON(map[string]any{"contents": []any{map[string]string{"uri": Scheme + id, "mimeType": "text/plain", "text": string(text)}}})
}

// Subscribe implements [provider.Library]: a kept result never changes.
func (t *Tool) Subscribe(context.Context, string, func()) (func(), error) { return func() {}, nil }
