package main

import (
	"encoding/json"
	"testing"

	"github.com/hermesd/hermesd/pluginsdk"
	"github.com/hermesd/hermesd/pluginsdk/plugintest"
)

func TestARollStaysWithinItsDice(t *testing.T) {
	s := plugintest.StartBinary(t, plugintest.Build(t, "."), nil)
	s.Run(t, plugintest.Case{Name: "two dice, and none at all", Steps: []plugintest.Step{
		{Tool: "dice_roll", Args: input{Count: 2, Sides: 6}, Check: func(t testing.TB, o *plugintest.Outcome) {
			var out output
			if err := json.Unmarshal(o.Structured, &out); err != nil {
				t.Fatal(err)
			}
			if len(out.Rolls) != 2 || out.Total < 2 || out.Total > 12 {
				t.Errorf("roll %+v", out)
			}
		}},
		{Tool: "dice_roll", Args: input{Count: -1}, Error: pluginsdk.InvalidArguments, Pointer: "/count"},
	}})
}

func TestItKeepsTheContract(t *testing.T) {
	plugintest.Conformance(t, plugin, nil)
	t.Run("as a program", func(t *testing.T) { plugintest.ConformanceBinary(t, plugintest.Build(t, "."), nil) })
}
