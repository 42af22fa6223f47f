// Compat is the plugin whose conversation with its host is kept under pluginsdk/testdata/compat. It does a little of
// everything that the contract has. What it does must not change: the kept conversations are compared with it.
package main

import (
	"context"
	"strings"

	"github.com/hermesd/hermesd/pluginsdk"
)

type settings struct {
	Greeting string `json:"greeting,omitempty" jsonschema:"how to greet" default:"Hello" maxLength:"20"`
}

type who struct {
	Name  string `json:"name" jsonschema:"who to greet" minLength:"1" maxLength:"100"`
	Times int    `json:"times,omitempty" default:"1" minimum:"1" maximum:"3"`
	Tone  string `json:"tone,omitempty" enum:"kind,gruff"`
}

type greeting struct {
	Greeting string `json:"greeting"`
}

type length struct {
	Bytes int64 `json:"bytes" minimum:"1" maximum:"1000000"`
}

func main() {
	var config settings
	none := struct{}{}
	pluginsdk.Serve(&pluginsdk.Plugin{
		Name: "compat", Version: "1.2.3", Description: "Does a little of everything.", Homepage: "https://example.com", License: "Apache-2.0",
		Capabilities: []string{pluginsdk.CanAskHuman, pluginsdk.CanCallTool, pluginsdk.CanStore},
		Config:       pluginsdk.NewConfig(func(_ context.Context, s settings) error { config = s; return nil }),
		Tools: []pluginsdk.Tool{
			pluginsdk.NewTool("greet", "Greet a person.", func(ctx context.Context, in who) (greeting, error) {
				pluginsdk.Progress(ctx, 1, 2, "thinking")
				pluginsdk.Logger(ctx).Info("greeting", "name", in.Name)
				return greeting{strings.Repeat(config.Greeting+", "+in.Name+"! ", in.Times)}, nil
			}, &pluginsdk.ToolOptions{
				Toolset: "compat", Title: "Greet", ReadOnly: true, Idempotent: true, ParallelSafe: true, OpenWorld: new(false),
				Keywords: []string{"welcome"}, Examples: []any{who{Name: "Ada", Times: 2}}, Meta: map[string]any{"x": 1},
			}),
			pluginsdk.NewTool("repeat", "A text of a length.", func(_ context.Context, in length) (string, error) {
				return strings.Repeat("x", int(in.Bytes)), nil
			}, &pluginsdk.ToolOptions{ReadOnly: true}),
			pluginsdk.NewTool("blocks", "Blocks of several kinds.", func(context.Context, struct{}) (*pluginsdk.Result, error) {
				return &pluginsdk.Result{Content: []pluginsdk.Content{
					pluginsdk.Text("a text"), pluginsdk.Image("image/png", []byte{1}), pluginsdk.Resource("file:///a", "text/plain", "a"),
				}, IsError: true, Meta: map[string]any{"k": "v"}}, nil
			}, nil),
			pluginsdk.NewTool("fail", "Fails.", func(context.Context, struct{}) (string, error) {
				return "", pluginsdk.Errorf(pluginsdk.DownstreamFailed, "it is down; try again in a minute").WithDetail("db1")
			}, nil),
			pluginsdk.NewTool("ask", "Asks a human.", func(ctx context.Context, _ struct{}) (string, error) {
				a, err := pluginsdk.AskHuman(ctx, pluginsdk.Question{Message: "which?", Choices: []string{"red", "blue"}})
				return a.Choice(), err
			}, nil),
			pluginsdk.NewTool("delegate", "Calls another tool.", func(ctx context.Context, _ struct{}) (*pluginsdk.Result, error) {
				return pluginsdk.CallTool(ctx, "other", none)
			}, nil),
			pluginsdk.NewTool("panic", "Panics.", func(context.Context, struct{}) (string, error) { panic("oh dear") }, nil),
		},
		Hook: func(_ context.Context, e *pluginsdk.HookEvent) (*pluginsdk.Decision, error) {
			if e.Tool == "forbidden" {
				return &pluginsdk.Decision{Action: pluginsdk.Block, Message: "no"}, nil
			}
			return nil, nil
		},
	})
}
