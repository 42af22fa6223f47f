package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/pluginsdk"
	"github.com/hermesd/hermesd/pluginsdk/plugintest"
)

func TestDecisions(t *testing.T) {
	s := plugintest.Start(t, plugin(), &plugintest.Options{Config: map[string]any{"replace": map[string]string{"user": "nobody"}}})
	for name, c := range map[string]struct {
		event, args, annotations string
		want                     pluginsdk.Decision
	}{
		"an ordinary call is allowed": {"pre_call", `{"a":1}`, `{}`, pluginsdk.Decision{Action: pluginsdk.Allow}},
		"a forbidden word blocks":     {"pre_call", `{"host":"production-1"}`, `{}`, pluginsdk.Decision{Action: pluginsdk.Block, Message: `no argument may hold the word "production" here; leave it out`}},
		"what destroys is asked":      {"pre_call", `{}`, `{"destructive":true}`, pluginsdk.Decision{Action: pluginsdk.Ask, Message: "deploy may destroy something", RuleKey: "destructive"}},
		"one argument is replaced":    {"pre_call", `{"user":"root","a":1}`, `{}`, pluginsdk.Decision{Action: pluginsdk.Modify, Args: map[string]any{"user": "nobody"}}},
		"after the call nothing is":   {"post_call", `{"host":"production-1"}`, `{}`, pluginsdk.Decision{Action: pluginsdk.Allow}},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.Intercept(t, &pluginsdk.HookEvent{Event: c.event, Tool: "deploy", Args: json.RawMessage(c.args), Annotations: json.RawMessage(c.annotations)})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnEmptyWordIsRefusedWithItsPlace(t *testing.T) {
	faults := plugintest.Configure(t, plugin(), settings{Forbidden: []string{"ok", " "}})
	if len(faults) != 1 || faults[0].Path != "/forbidden/1" {
		t.Errorf("faults %v", faults)
	}
}

func TestItKeepsTheContract(t *testing.T) { plugintest.Conformance(t, plugin, nil) }
