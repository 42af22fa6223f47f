// Command hello is the smallest plugin: one tool that greets.
package main

import (
	"context"
	"fmt"

	"github.com/hermesd/hermesd/pluginsdk"
)

type input struct {
	Name     string `json:"name" jsonschema:"who to greet" minLength:"1" maxLength:"100"`
	Language string `json:"language,omitempty" jsonschema:"language of the greeting" enum:"en,de,fr,es" default:"en"`
}

type output struct {
	Greeting string `json:"greeting"`
}

func greet(_ context.Context, in input) (output, error) {
	words := map[string]string{"en": "Hello", "de": "Hallo", "fr": "Bonjour", "es": "Hola"}
	return output{Greeting: fmt.Sprintf("%s, %s!", words[in.Language], in.Name)}, nil
}

func plugin() *pluginsdk.Plugin {
	return &pluginsdk.Plugin{
		Name: "hello", Version: "1.0.0", Description: "Greets people.", License: "Apache-2.0",
		Tools: []pluginsdk.Tool{
			pluginsdk.NewTool("greet", "Greet a person by name.", greet, &pluginsdk.ToolOptions{
				Toolset: "hello", Title: "Greet", ReadOnly: true, Idempotent: true, ParallelSafe: true, OpenWorld: new(false),
				Keywords: []string{"welcome", "salute"},
				Examples: []any{input{Name: "Ada", Language: "de"}},
			}),
		},
	}
}

func main() { pluginsdk.Serve(plugin()) }
