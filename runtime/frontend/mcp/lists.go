package mcp

import (
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK's answers to lists with our bytes in the place of their items. They embed the SDK's types, which know what the
// newer protocol adds to a result.
type (
	resourceList struct {
		*sdk.ListResourcesResult
		items json.RawMessage
	}
	templateList struct {
		*sdk.ListResourceTemplatesResult
		items json.RawMessage
	}
	promptList struct {
		*sdk.ListPromptsResult
		items json.RawMessage
	}
)

// MarshalJSON implements [json.Marshaler].
func (r *resourceList) MarshalJSON() ([]byte, error) {
	return withItems(r.ListResourcesResult, "resources", r.items)
}

// MarshalJSON implements [json.Marshaler].
func (r *templateList) MarshalJSON() ([]byte, error) {
	return withItems(r.ListResourceTemplatesResult, "resourceTemplates", r.items)
}

// MarshalJSON implements [json.Marshaler].
func (r *promptList) MarshalJSON() ([]byte, error) {
	return withItems(r.ListPromptsResult, "prompts", r.items)
}

// listShelf is the answer to a list of resources, templates or prompts; any other result stays as it is.
func (a *agentServer) listShelf(req sdk.Request, result sdk.Result) sdk.Result {
	page := func(method, cursor string) json.RawMessage {
		if cursor != "" { // we hand out no cursors: nothing follows any
			return json.RawMessage("[]")
		}
		return a.shelves().lists[method]
	}
	switch r := result.(type) {
	case *sdk.ListResourcesResult:
		if q, ok := req.(*sdk.ListResourcesRequest); ok {
			return &resourceList{r, page(methodListResources, q.Params.Cursor)}
		}
	case *sdk.ListResourceTemplatesResult:
		if q, ok := req.(*sdk.ListResourceTemplatesRequest); ok {
			return &templateList{r, page(methodListTemplates, q.Params.Cursor)}
		}
	case *sdk.ListPromptsResult:
		if q, ok := req.(*sdk.ListPromptsRequest); ok {
			return &promptList{r, page(methodListPrompts, q.Params.Cursor)}
		}
	}
	return result
}

// withItems is a result as JSON with other items under key.
func withItems(result sdk.Result, key string, items json.RawMessage) ([]byte, error) {
	raw, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return nil, err
	}
	delete(keys, key)
	return object(keys, key, items)
}
