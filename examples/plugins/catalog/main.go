// Command catalog serves the tools of a catalog file, so that a daemon can be seen with thousands of real tools without
// their servers. Every call answers with its own arguments.
//
// Its configuration names the file, one tool a line:
//
//	{"name": "github__create_issue", "description": "…", "parameters": {JSON Schema}, "source": "github"}
//
// A name that ends in .gz is read through gzip. Inline tools of the same form can be given too.
package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/hermesd/hermesd/pluginsdk"
)

type settings struct {
	File   string   `json:"file,omitempty" jsonschema:"path of a .jsonl or .jsonl.gz file, one tool a line"`
	Source []string `json:"source,omitempty" jsonschema:"only tools whose source is one of these"`
	Limit  int      `json:"limit,omitempty" jsonschema:"at most so many tools; 0 means all" minimum:"0"`
	Inline []entry  `json:"inline,omitempty" jsonschema:"further tools, given here"`
}

// catalog is the plugin's state: what its configuration named.
type catalog struct {
	mu    sync.Mutex
	tools []pluginsdk.Tool
}

func (c *catalog) configure(ctx context.Context, s settings) error {
	if s.File == "" && len(s.Inline) == 0 {
		return &pluginsdk.ConfigError{Summary: "there is nothing to serve", Detail: `name a catalog with "file", or give tools with "inline"`}
	}
	entries := s.Inline
	if s.File != "" {
		read, err := readFile(ctx, s.File, s.Source, s.Limit)
		if err != nil {
			return &pluginsdk.ConfigError{Path: "/file", Summary: err.Error(), Detail: "the path must be readable for the plugin; each line is a JSON object"}
		}
		entries = append(read, entries...)
	}
	tools, left := makeTools(entries)
	if s.Limit > 0 && len(tools) > s.Limit {
		tools = tools[:s.Limit]
	}
	if len(tools) == 0 {
		return &pluginsdk.ConfigError{Path: "/source", Summary: "no tool of the catalog is left", Detail: "check the spelling of the sources"}
	}
	if len(left) > 0 {
		slog.Warn("tools without a usable schema, or named twice, are left out", "count", len(left), "first", left[0])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tools = tools
	return nil
}

func (c *catalog) list(context.Context) ([]pluginsdk.Tool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tools, nil
}

// makeTools turns entries into tools and names those that cannot be served.
func makeTools(entries []entry) (tools []pluginsdk.Tool, left []string) {
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		t := e.tool()
		if t.Err() != nil || seen[t.Name()] {
			left = append(left, e.Name)
			continue
		}
		seen[t.Name()] = true
		tools = append(tools, t)
	}
	return tools, left
}

func echo(_ context.Context, args json.RawMessage) (*pluginsdk.Result, error) {
	return &pluginsdk.Result{Content: []pluginsdk.Content{pluginsdk.Text(string(args))}, Structured: args}, nil
}

func plugin() *pluginsdk.Plugin {
	c := &catalog{}
	return &pluginsdk.Plugin{
		Name: "catalog", Version: "1.0.0", License: "Apache-2.0",
		Description: "Serves the tools of a catalog file; every call answers with its own arguments.",
		Config:      pluginsdk.NewConfig(c.configure), ListTools: c.list,
	}
}

func main() { pluginsdk.Serve(plugin()) }
