// Command dice is an example of a plugin in a module of its own, as a third party has it: nothing of hermesd is imported but
// the SDK. The replace line in go.mod stands for the published module.
package main

import (
	"context"
	"math/rand/v2"

	"github.com/hermesd/hermesd/pluginsdk"
)

type input struct {
	Count int `json:"count,omitempty" jsonschema:"how many dice" default:"1" minimum:"1" maximum:"100"`
	Sides int `json:"sides,omitempty" jsonschema:"how many sides each has" default:"6" minimum:"2" maximum:"1000"`
}

type output struct {
	Rolls []int `json:"rolls"`
	Total int   `json:"total"`
}

func roll(_ context.Context, in input) (output, error) {
	out := output{Rolls: make([]int, in.Count)}
	for i := range out.Rolls {
		out.Rolls[i] = 1 + rand.IntN(in.Sides)
		out.Total += out.Rolls[i]
	}
	return out, nil
}

func plugin() *pluginsdk.Plugin {
	return &pluginsdk.Plugin{
		Name: "dice", Version: "1.0.0", License: "Apache-2.0", Description: "Rolls dice.",
		Tools: []pluginsdk.Tool{
			pluginsdk.NewTool("dice_roll", "Roll dice and add them up.", roll, &pluginsdk.ToolOptions{
				Toolset: "games", ReadOnly: true, ParallelSafe: true, OpenWorld: new(false),
				Keywords: []string{"random", "chance"}, Examples: []any{input{Count: 2, Sides: 6}},
			}),
		},
	}
}

func main() { pluginsdk.Serve(plugin()) }
