// Command hook is an example of a plugin that decides about calls before they run. It blocks arguments that hold a
// forbidden word, rewrites single arguments, and asks a human about tools that destroy.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hermesd/hermesd/pluginsdk"
)

type settings struct {
	Forbidden []string          `json:"forbidden,omitempty" jsonschema:"words that no argument may hold" default:"[\"production\"]"`
	Replace   map[string]string `json:"replace,omitempty" jsonschema:"arguments that are replaced, by name"`
	AskFirst  bool              `json:"ask_first,omitempty" jsonschema:"ask a human about tools that may destroy something" default:"true"`
}

type guard struct{ settings settings }

func (g *guard) configure(_ context.Context, s settings) error {
	for i, word := range s.Forbidden {
		if strings.TrimSpace(word) == "" {
			return &pluginsdk.ConfigError{Path: fmt.Sprintf("/forbidden/%d", i), Summary: "an empty word would forbid every call", Detail: "remove it"}
		}
	}
	g.settings = s
	return nil
}

// decide is asked about every call that the operator's hook block matches.
func (g *guard) decide(_ context.Context, e *pluginsdk.HookEvent) (*pluginsdk.Decision, error) {
	if e.Event != "pre_call" {
		return nil, nil // nothing to decide after the call
	}
	for _, word := range g.settings.Forbidden {
		if strings.Contains(string(e.Args), word) {
			return &pluginsdk.Decision{Action: pluginsdk.Block, Message: fmt.Sprintf("no argument may hold the word %q here; leave it out", word)}, nil
		}
	}
	var marks struct {
		Destructive *bool `json:"destructive"`
	}
	if len(e.Annotations) > 0 {
		if err := json.Unmarshal(e.Annotations, &marks); err != nil {
			return nil, fmt.Errorf("the annotations of %s cannot be read: %w", e.Tool, err)
		}
	}
	if g.settings.AskFirst && marks.Destructive != nil && *marks.Destructive {
		return &pluginsdk.Decision{Action: pluginsdk.Ask, Message: e.Tool + " may destroy something", RuleKey: "destructive"}, nil
	}
	return g.rewrite(e.Args)
}

// rewrite replaces those of the configured arguments that the call has.
func (g *guard) rewrite(raw json.RawMessage) (*pluginsdk.Decision, error) {
	var args map[string]any
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, fmt.Errorf("the arguments cannot be read: %w", err)
	}
	changed := map[string]any{}
	for name, value := range g.settings.Replace {
		if _, ok := args[name]; ok {
			changed[name] = value
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	return &pluginsdk.Decision{Action: pluginsdk.Modify, Args: changed}, nil
}

func plugin() *pluginsdk.Plugin {
	g := &guard{}
	return &pluginsdk.Plugin{
		Name: "hook", Version: "1.0.0", License: "Apache-2.0", Description: "Decides about calls before they run.",
		Config: pluginsdk.NewConfig(g.configure), Hook: g.decide,
	}
}

func main() { pluginsdk.Serve(plugin()) }
