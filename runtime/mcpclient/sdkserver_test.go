package mcpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newSDKServer is a well-behaved server made with the official SDK.
func newSDKServer(o *mcp.ServerOptions) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, o)
	object := json.RawMessage(`{"type":"object"}`)
	s.AddTool(&mcp.Tool{Name: "echo", Title: "Echo", Description: "Says it again.", InputSchema: object, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
		})
	s.AddTool(&mcp.Tool{Name: "progress", InputSchema: object},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for i := range 3 {
				err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
					ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: fmt.Sprintf("step %d", i+1),
				})
				if err != nil {
					return nil, err
				}
				if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "warning", Logger: "sdk", Data: map[string]int{"step": i + 1}}); err != nil {
					return nil, err
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		})
	s.AddTool(&mcp.Tool{Name: "ask", InputSchema: object},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var params mcp.ElicitParams
			if err := json.Unmarshal(r.Params.Arguments, &params); err != nil {
				return nil, err
			}
			if p := r.Session.InitializeParams(); p == nil || p.ProtocolVersion >= "2026" {
				if answer, ok := r.Params.InputResponses["who"].(*mcp.ElicitResult); ok {
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s %v %s", answer.Action, answer.Content, r.Params.RequestState)}}}, nil
				}
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"who": &params}, RequestState: "kept"}, nil
			}
			answer, err := r.Session.Elicit(ctx, &params)
			if err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s %v", answer.Action, answer.Content)}}}, nil
		})
	s.AddTool(&mcp.Tool{Name: "block", InputSchema: object},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			select { // without a session the SDK does not hear of the cancellation
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Second):
				return nil, errors.New("nobody cancelled")
			}
		})
	s.AddTool(&mcp.Tool{Name: "big", InputSchema: object},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", 2<<20)}}}, nil
		})
	return s
}

func runSDKServer() {
	if err := newSDKServer(nil).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Print(err)
	}
}
