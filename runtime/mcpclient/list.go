package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Bounds of one list of tools, over all its pages.
const (
	maxPages     = 1000
	maxTools     = 20_000
	maxListBytes = 64 << 20
)

// listTools reads all pages of tools/list. The definitions stay the bytes that the server sent.
func (s *session) listTools(ctx context.Context) ([]json.RawMessage, error) {
	var tools []json.RawMessage
	size := 0
	seen := map[string]bool{}
	var cursor json.RawMessage
	for range maxPages {
		page, err := s.line.roundTrip(ctx, &request{method: "tools/list", params: func(b *bytes.Buffer) error {
			if cursor != nil {
				b.WriteString(`"cursor":`)
				return json.Compact(b, cursor)
			}
			return nil
		}})
		var refused *rpcError
		if errors.As(err, &refused) && refused.code == jsonrpc.CodeMethodNotFound {
			return nil, nil // a server without tools
		}
		if err != nil {
			return nil, fmt.Errorf("tools/list: %w", err)
		}
		if size += len(page); size > maxListBytes {
			return nil, fmt.Errorf("tools/list: the list has more than %d bytes", maxListBytes)
		}
		listed := false
		cursor = nil
		members(page, func(key string, value json.RawMessage) {
			switch key {
			case "tools":
				listed = elements(value, func(one json.RawMessage) { tools = append(tools, one) })
			case "nextCursor":
				if !isNull(value) && string(value) != `""` {
					cursor = value
				}
			}
		})
		switch {
		case !listed:
			return nil, errors.New("tools/list: the answer has no array of tools")
		case len(tools) > maxTools:
			return nil, fmt.Errorf("tools/list: the server has more than %d tools", maxTools)
		case cursor == nil:
			return tools, nil
		case seen[string(cursor)]:
			return nil, fmt.Errorf("tools/list: the server repeats the cursor %s", bounded(string(cursor), 100))
		}
		seen[string(cursor)] = true
	}
	return nil, fmt.Errorf("tools/list: the list has more than %d pages", maxPages)
}
