package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// methodDiscover begins a session of protocol 2026-07-28; an older server refuses it.
const methodDiscover = "server/discover"

// transport hands the SDK its connection: the line.
type transport struct{ line *line }

// Connect implements [mcp.Transport].
func (t transport) Connect(context.Context) (mcp.Connection, error) { return t.line, nil }

// Read implements [mcp.Connection].
func (l *line) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-l.up:
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.done():
		return nil, l.err()
	}
}

// Write implements [mcp.Connection].
func (l *line) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encoding a message for the server: %w", err)
	}
	f := &frame{data: data}
	if r, ok := m.(*jsonrpc.Request); ok {
		f.method, f.id, f.version = r.Method, r.ID, metaVersion(r.Params)
	}
	if f.method == methodDiscover {
		// Some servers of older protocols answer nothing before initialize. Without an answer the SDK goes on to that.
		time.AfterFunc(l.patience, func() {
			l.push(&jsonrpc.Response{ID: f.id, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "not answered"}})
		})
	}
	_, err = l.send(ctx, f)
	return err
}

// metaVersion reads the protocol version that requests of 2026-07-28 carry in their _meta; "" if there is none.
func metaVersion(params json.RawMessage) (version string) {
	rawjson.Members(params, func(key string, value json.RawMessage) {
		if key == "_meta" {
			rawjson.Members(value, func(key string, value json.RawMessage) {
				if key == mcp.MetaKeyProtocolVersion {
					version, _ = rawjson.String(value)
				}
			})
		}
	})
	return version
}

// Close implements [mcp.Connection].
func (l *line) Close() error {
	l.fail(errStopped)
	return nil
}

// SessionID implements [mcp.Connection].
func (l *line) SessionID() string { return "" }
