// Command conformance serves the tools that the server scenarios of the public MCP conformance suite (npm
// @modelcontextprotocol/conformance) call, under the suite's own names. With it the suite proves that every content type,
// log line, progress step and question crosses the plugin boundary unchanged.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hermesd/hermesd/pluginsdk"
)

// pause is the time that the suite wants between two notifications of one call.
const pause = 50 * time.Millisecond

func main() { pluginsdk.Serve(plugin()) }

func plugin() *pluginsdk.Plugin {
	return &pluginsdk.Plugin{
		Name: "conformance", Version: "1.0.0", License: "Apache-2.0",
		Description:  "The tools that the MCP conformance suite calls.",
		Capabilities: []string{pluginsdk.CanAskHuman, pluginsdk.CanSample},
		Tools: []pluginsdk.Tool{
			tool("test_simple_text", "Returns a text block.", fixed(pluginsdk.Text("This is a simple text response for testing."))),
			tool("test_image_content", "Returns an image block.", fixed(pluginsdk.Image("image/png", redPixel()))),
			tool("test_audio_content", "Returns an audio block.", fixed(pluginsdk.Audio("audio/wav", silence()))),
			tool("test_embedded_resource", "Returns an embedded resource.",
				fixed(pluginsdk.Resource("test://embedded-resource", "text/plain", "This is an embedded resource content."))),
			tool("test_multiple_content_types", "Returns text, an image and an embedded resource.", fixed(
				pluginsdk.Text("Multiple content types test:"),
				pluginsdk.Image("image/png", redPixel()),
				pluginsdk.Resource("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`))),
			tool("test_tool_with_logging", "Sends three log lines while it runs.", logging),
			tool("test_tool_with_progress", "Reports three steps of progress while it runs.", progress),
			tool("test_error_handling", "Always fails.", failing),
			tool("test_sampling", "Lets the agent's model complete a prompt.", sampling),
			tool("test_elicitation", "Asks the user for a name and an address.", elicitation),
			tool("test_elicitation_sep1034_defaults", "Asks with a form that has defaults of every primitive type.", form(defaultsForm)),
			tool("test_elicitation_sep1330_enums", "Asks with a form that has every kind of enum.", form(enumsForm)),
			tool("test_reconnection", "Answers after a moment in which the client's stream may be closed.", reconnection),
			pluginsdk.NewRawTool("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features.", schema2020, echo, options()),
		},
	}
}

func options() *pluginsdk.ToolOptions {
	return &pluginsdk.ToolOptions{Toolset: "conformance", Coldness: pluginsdk.Core, ReadOnly: true, ParallelSafe: true, OpenWorld: new(false)}
}

func tool[In any](name, description string, fn func(context.Context, In) (*pluginsdk.Result, error)) pluginsdk.Tool {
	return pluginsdk.NewTool(name, description, fn, options())
}

// none are the arguments of a tool that takes none.
type none struct{}

func fixed(blocks ...pluginsdk.Content) func(context.Context, none) (*pluginsdk.Result, error) {
	return func(context.Context, none) (*pluginsdk.Result, error) { return &pluginsdk.Result{Content: blocks}, nil }
}

// wait waits for d, or less if the call ends.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func logging(ctx context.Context, _ none) (*pluginsdk.Result, error) {
	log := pluginsdk.Logger(ctx)
	log.Info("Tool execution started")
	if err := wait(ctx, pause); err != nil {
		return nil, err
	}
	log.Info("Tool processing data")
	if err := wait(ctx, pause); err != nil {
		return nil, err
	}
	log.Info("Tool execution completed")
	return pluginsdk.TextResult("Tool with logging executed successfully"), nil
}

func progress(ctx context.Context, _ none) (*pluginsdk.Result, error) {
	pluginsdk.Progress(ctx, 0, 100, "Completed step 0 of 100")
	for _, done := range []float64{50, 100} {
		if err := wait(ctx, pause); err != nil {
			return nil, err
		}
		pluginsdk.Progress(ctx, done, 100, fmt.Sprintf("Completed step %g of 100", done))
	}
	return pluginsdk.TextResult("Tool with progress executed successfully"), nil
}

func failing(context.Context, none) (*pluginsdk.Result, error) {
	r := pluginsdk.TextResult("This tool intentionally returns an error for testing")
	r.IsError = true
	return r, nil
}

func reconnection(ctx context.Context, _ none) (*pluginsdk.Result, error) {
	if err := wait(ctx, 2*pause); err != nil {
		return nil, err
	}
	return pluginsdk.TextResult("Reconnection test completed successfully. If you received this, the client properly reconnected after stream closure."), nil
}

type prompt struct {
	Prompt string `json:"prompt" jsonschema:"The prompt to send to the LLM"`
}

func sampling(ctx context.Context, in prompt) (*pluginsdk.Result, error) {
	raw, err := pluginsdk.Sample(ctx, map[string]any{
		"messages":  []any{map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": in.Prompt}}},
		"maxTokens": 100,
	})
	if err != nil {
		return nil, fmt.Errorf("sampling: %w", err)
	}
	var answer struct {
		Content struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("the sampled message cannot be read: %w", err)
	}
	return pluginsdk.TextResult("LLM response: %s", answer.Content.Text), nil
}

func echo(_ context.Context, args json.RawMessage) (*pluginsdk.Result, error) {
	return pluginsdk.TextResult("JSON Schema 2020-12 tool called with: %s", args), nil
}
