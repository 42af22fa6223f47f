package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The smallest picture and the smallest sound.
var (
	pixel   = decoded("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	silence = decoded("UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=")
)

func decoded(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func addResources(s *mcp.Server) {
	resource := func(uri, kind string, contents mcp.ResourceContents) {
		contents.URI, contents.MIMEType = uri, kind
		name := strings.TrimPrefix(uri, "test://")
		s.AddResource(&mcp.Resource{URI: uri, Name: name, MIMEType: kind}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&contents}}, nil
		})
	}
	resource("test://static-text", "text/plain", mcp.ResourceContents{Text: "This is the content of the static text resource."})
	resource("test://static-binary", "image/png", mcp.ResourceContents{Blob: pixel})
	resource("test://watched-resource", "text/plain", mcp.ResourceContents{Text: "watched"})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template", MIMEType: "application/json"}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
		data := fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json", Text: data}}}, nil
	})
	times := 1
	if n, err := strconv.Atoi(os.Getenv("TOUCHES")); err == nil { // for tests of floods
		times = n
	}
	add(s, "touch_watched_resource", noArguments, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for range times {
			if err := s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "test://watched-resource"}); err != nil {
				return nil, err
			}
		}
		return text("touched"), nil
	})
}

// message makes a prompt's messages of its arguments.
type message = func(arguments map[string]string) []*mcp.PromptMessage

func says(role mcp.Role, content ...mcp.Content) message {
	return func(map[string]string) []*mcp.PromptMessage {
		var list []*mcp.PromptMessage
		for _, c := range content {
			list = append(list, &mcp.PromptMessage{Role: role, Content: c})
		}
		return list
	}
}

func addPrompt(s *mcp.Server, name string, arguments []string, m message) {
	p := &mcp.Prompt{Name: name, Description: "Conformance: " + name}
	for _, a := range arguments {
		p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Required: true})
	}
	s.AddPrompt(p, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: m(r.Params.Arguments)}, nil
	})
}

func addPrompts(s *mcp.Server) {
	addPrompt(s, "test_simple_prompt", nil, says("user", &mcp.TextContent{Text: "This is a simple prompt for testing."}))
	addPrompt(s, "test_prompt_with_arguments", []string{"arg1", "arg2"}, func(a map[string]string) []*mcp.PromptMessage {
		return says("user", &mcp.TextContent{Text: fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])})(nil)
	})
	addPrompt(s, "test_prompt_with_embedded_resource", []string{"resourceUri"}, func(a map[string]string) []*mcp.PromptMessage {
		return says("user",
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: a["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}},
			&mcp.TextContent{Text: "Please process the embedded resource above."})(nil)
	})
	addPrompt(s, "test_prompt_with_image", nil, says("user", &mcp.ImageContent{Data: pixel, MIMEType: "image/png"}, &mcp.TextContent{Text: "Please analyze the image above."}))
	s.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "Conformance: a prompt that asks first"}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		given := answers(r.Params.InputResponses).accepted("user_context", "context")
		if given == nil {
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": form("What about?", contextForm)}}, nil
		}
		return &mcp.GetPromptResult{Messages: says("user", &mcp.TextContent{Text: fmt.Sprintf("Context: %v", given)})(nil)}, nil
	})
}
