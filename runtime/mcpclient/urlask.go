package mcpclient

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// page is one elicitation by URL that a server wants done before it takes a call (MCP 2025-11-25, URLElicitationRequired).
type page struct {
	Mode    string `json:"mode"`
	Message string `json:"message"`
	URL     string `json:"url"`
	ID      string `json:"elicitationId"`
}

// urlsOf returns the pages that an error asks for, or nil if it is another error.
func urlsOf(err error) []page {
	var e *rpcError
	if !errors.As(err, &e) || e.code != mcp.CodeURLElicitationRequired {
		return nil
	}
	var data struct {
		Elicitations []page `json:"elicitations"`
	}
	if json.Unmarshal(e.data, &data) != nil {
		return nil
	}
	for _, p := range data.Elicitations {
		if p.Mode != "url" || p.URL == "" || p.ID == "" {
			return nil
		}
	}
	return data.Elicitations
}

// openPages shows the pages to the human behind the agent and waits until the server says that each is done.
func (s *session) openPages(ctx context.Context, host *provider.Host, pages []page) error {
	var waits []<-chan struct{}
	for _, p := range pages {
		completed, forget := s.line.awaitCompletion(p.ID)
		defer forget()
		waits = append(waits, completed)
		answer, err := host.Ask(ctx, provider.Question{Message: p.Message, URL: p.URL, ID: p.ID})
		if err != nil {
			return tool.AsError(err).With("url", p.URL)
		}
		if answer.Action != "accept" {
			return tool.Errorf(tool.ToolFailed, "the tool needs the user to open a page first, and the user did not; do not repeat the call unless the user asks for it").With("url", p.URL)
		}
	}
	for _, completed := range waits {
		select {
		case <-completed:
		case <-s.line.done():
			return &brokenError{cause: s.line.err()}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
