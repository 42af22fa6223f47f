package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Bounds of one list, over all its pages.
const (
	maxPages     = 1000
	maxTools     = 20_000 // and as many resources, templates and prompts each
	maxListBytes = 64 << 20
)

// listTools reads all pages of tools/list. The definitions stay the bytes that the server sent.
func (s *session) listTools(ctx context.Context) ([]json.RawMessage, error) {
	return s.list(ctx, "tools/list", "tools")
}

// list reads all pages of a list, whose items stand under key. A server without the method has none.
func (s *session) list(ctx context.Context, method, key string) ([]json.RawMessage, error) {
	var items []json.RawMessage
	size := 0
	seen := map[string]bool{}
	var cursor json.RawMessage
	for range maxPages {
		page, err := s.line.roundTrip(ctx, &request{method: method, params: func(b *bytes.Buffer) error {
			if cursor != nil {
				b.WriteString(`"cursor":`)
				return json.Compact(b, cursor)
			}
			return nil
		}})
		var refused *rpcError
		if errors.As(err, &refused) && refused.code == jsonrpc.CodeMethodNotFound {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		if size += len(page); size > maxListBytes {
			return nil, fmt.Errorf("%s: the list has more than %d bytes", method, maxListBytes)
		}
		listed := false
		cursor = nil
		rawjson.Members(page, func(k string, value json.RawMessage) {
			switch k {
			case key:
				listed = rawjson.Elements(value, func(one json.RawMessage) { items = append(items, one) })
			case "nextCursor":
				if !rawjson.IsNull(value) && string(value) != `""` {
					cursor = value
				}
			}
		})
		switch {
		case !listed:
			return nil, fmt.Errorf("%s: the answer has no array of %s", method, key)
		case len(items) > maxTools:
			return nil, fmt.Errorf("%s: the server has more than %d %s", method, maxTools, key)
		case cursor == nil:
			return items, nil
		case seen[string(cursor)]:
			return nil, fmt.Errorf("%s: the server repeats the cursor %s", method, bounded(string(cursor), 100))
		}
		seen[string(cursor)] = true
	}
	return nil, fmt.Errorf("%s: the list has more than %d pages", method, maxPages)
}
