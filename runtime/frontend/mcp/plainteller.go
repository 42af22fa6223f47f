package mcp

import (
	"context"
	"encoding/json"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// plainTeller tells a client of a plain call that says everything with each request. What it sends is a whole message.
type plainTeller struct {
	level sdk.LoggingLevel // of the log lines that the client wants; "" for none
	send  func(context.Context, []byte) error
}

// ID is the session's, of which there is none.
func (t *plainTeller) ID() string { return "" }

// NotifyProgress tells the client how far its call is.
func (t *plainTeller) NotifyProgress(ctx context.Context, p *sdk.ProgressNotificationParams) error {
	return t.notify(ctx, "notifications/progress", p)
}

// levels are MCP's log levels, by rising severity (RFC 5424).
var levels = []sdk.LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Log sends a log line, if the client wants lines of its level.
func (t *plainTeller) Log(ctx context.Context, l *sdk.LoggingMessageParams) error {
	if wanted := slices.Index(levels, t.level); wanted < 0 || slices.Index(levels, l.Level) < wanted {
		return nil
	}
	return t.notify(ctx, "notifications/message", l)
}

func (t *plainTeller) notify(ctx context.Context, method string, params any) error {
	raw, err := json.Marshal(struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
	if err != nil {
		return err
	}
	return t.send(ctx, raw)
}
