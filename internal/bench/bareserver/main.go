// Command bareserver is what hermesd is compared with: an MCP server of the official Go SDK on standard input and output,
// with the one tool that the hello plugin has, and nothing between it and its client. On request it has further tools, or
// serves over HTTP.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

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
	tools := flag.String("tools", "", "a file with further tools, a JSON array of MCP tools; each answers with its arguments")
	listen := flag.Bool("http", false, "serve over HTTP on a free port of loopback, and print the address")
	flag.Parse()
	if err := serve(*tools, *listen); err != nil {
		log.Fatal(err)
	}
}

func serve(tools string, listen bool) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, &mcp.ServerOptions{PageSize: 10_000})
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "Greet a person by name."},
		func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, output, error) {
			return nil, output{Greeting: "Hello, " + in.Name + "!"}, nil
		})
	if tools != "" {
		if err := add(server, tools); err != nil {
			return err
		}
	}
	if !listen {
		return server.Run(context.Background(), &mcp.StdioTransport{})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Printf("listening http://%s\n", l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	return http.Serve(l, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
}

func add(server *mcp.Server, file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var tools []*mcp.Tool
	if err := json.Unmarshal(raw, &tools); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, t := range tools {
		server.AddTool(t, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, err := json.Marshal(map[string]any{"ok": true, "tool": t.Name, "args": r.Params.Arguments})
			if err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(answer)}}}, nil
		})
	}
	return nil
}
