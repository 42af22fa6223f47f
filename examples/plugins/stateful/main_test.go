package main

import (
	"sync"
	"testing"

	"github.com/hermesd/hermesd/pluginsdk"
	"github.com/hermesd/hermesd/pluginsdk/plugintest"
)

func TestTwoAgentsShareNothing(t *testing.T) {
	plugintest.Start(t, plugin(), nil).Run(t,
		plugintest.Case{Name: "counters", Steps: []plugintest.Step{
			{Tool: "counter_add", Args: `{"name":"visits","by":2}`, Want: value{2}},
			{Tool: "counter_add", Args: `{"name":"visits"}`, Want: value{3}},
			{Tool: "counter_get", Args: counter{"visits"}, Want: value{3}},
			{Tool: "counter_get", Args: counter{"visits"}, Agent: "agent-2", Want: value{0}},
		}},
		plugintest.Case{Name: "scratch pads", Steps: []plugintest.Step{
			{Tool: "scratch_write", Args: text{"mine"}},
			{Tool: "scratch_read", Want: text{"mine"}},
			{Tool: "scratch_read", Agent: "agent-2", Want: text{""}},
		}},
	)
}

func TestNoIncrementIsLostBetweenCallsAtOnce(t *testing.T) {
	s := plugintest.Start(t, plugin(), nil)
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() { s.Call(t, "counter_add", counter{"visits"}) })
	}
	calls.Wait()
	s.Run(t, plugintest.Case{Name: "all fifty count", Steps: []plugintest.Step{
		{Tool: "counter_get", Args: counter{"visits"}, Want: value{50}},
	}})
}

func TestWithoutTheGrantTheErrorSaysWhatIsMissing(t *testing.T) {
	s := plugintest.Start(t, plugin(), &plugintest.Options{Grant: []string{}})
	if got := s.Call(t, "counter_get", counter{"visits"}).Code(); got != pluginsdk.NotGranted {
		t.Errorf("code %q", got)
	}
}

func TestItKeepsTheContract(t *testing.T) { plugintest.Conformance(t, plugin, nil) }
