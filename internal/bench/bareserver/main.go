// Command bareserver is what hermesd is compared with: an MCP server of the official Go SDK on standard input and output,
// with the one tool that the hello plugin has, and nothing between it and its client.
package main

import (
	"context"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type input struct {
	Name     string `json:"name" jsonschema:"who to greet"`
	Language string `json:"language,omitempty" jsonschema:"language of the greeting"`
}

type output struct {
	Greeting string `json:"greeting"`
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "Greet a person by name."},
		func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, output, error) {
			return nil, output{Greeting: "Hello, " + in.Name + "!"}, nil
		})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
