// Command mcpserver is an MCP server over standard streams, on the official Go SDK, with the tools, resources and prompts
// that the public conformance suite wants to find. Behind hermesd, with prefix = "", it shows that everything in the
// protocol passes through a gateway.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if err := newServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func newServer() *mcp.Server {
	accept := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	s := mcp.NewServer(&mcp.Implementation{Name: "conformance-upstream", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{
			//lint:ignore SA1019 clients before 2026-07-28 have it
			Logging:    &mcp.LoggingCapabilities{},
			Extensions: map[string]any{tasksExtension: struct{}{}},
		},
		SubscribeHandler:   accept,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{r.Params.Argument.Value + "paris", "park"}, Total: 2}}, nil
		},
	})
	addTools(s)
	addDialogs(s)
	addTasks(s, jobs())
	addResources(s)
	addPrompts(s)
	for _, name := range strings.Fields(os.Getenv("EXTRA_TOOLS")) { // for tests of names
		add(s, name, noArguments, always(text("%s of %s", name, os.Getenv("NAME"))))
	}
	return s
}
