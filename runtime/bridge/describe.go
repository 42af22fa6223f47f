package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

const maxDescribed = 10 // names in one tool_describe

type describeAnswer struct {
	Tools    map[tool.Name]*description `json:"tools"`
	NotFound []string                   `json:"not_found,omitempty"`
	Hint     string                     `json:"hint,omitempty"`
	Errors   map[string]string          `json:"errors,omitempty"`
}

type description struct {
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Unavailable string          `json:"unavailable,omitempty"`
}

// Describe answers tool_describe: full texts, never cut. A name that is written a little differently stands in the answer
// under its right name.
func (b *Bridge) Describe(ctx context.Context, c *Caller, args json.RawMessage) (*tool.Result, error) {
	names, refusal := describeInput(args)
	if refusal != nil {
		return nil, b.refuse(ctx, c, refusal)
	}
	answer := &describeAnswer{Tools: map[tool.Name]*description{}}
	var hints []string
	fail := func(name, text string) {
		if answer.Errors == nil {
			answer.Errors = map[string]string{}
		}
		answer.Errors[clip(name)] = text
	}
	for _, name := range names {
		if _, ok := c.Names.Kind(name); ok {
			fail(name, "it is a bridge tool and stands in your own list; call it directly")
			continue
		}
		e, err := c.View.Find(name)
		switch {
		case tool.CodeOf(err) == tool.UnknownTool:
			answer.NotFound = append(answer.NotFound, clip(name))
			if near, ok := tool.AsError(err).Extra["did_you_mean"].([]tool.Name); ok {
				hints = append(hints, fmt.Sprintf("instead of %s: %s", clip(name), strings.Join(near, ", ")))
			}
		case err != nil:
			fail(name, err.Error())
		case !c.deferred(e.Definition.Name):
			fail(e.Definition.Name, "it stands in your own list with its parameters; call it directly")
		default:
			d := e.Definition
			answer.Tools[d.Name] = &description{d.Description, d.InputSchema, e.State().Reason}
			if cold, ok := e.Provider.(provider.Warmer); ok {
				cold.Warm() // who reads how to call it is about to
			}
		}
	}
	if len(answer.NotFound) > 0 {
		hints = append(hints, fmt.Sprintf("search with %s before you say that a tool is missing", c.Names.OrDefault().Search))
		answer.Hint = strings.Join(hints, "; ")
	}
	return encode(answer)
}

func describeInput(args json.RawMessage) ([]string, *tool.Error) {
	keys, refusal := object(args)
	if refusal != nil {
		return nil, refusal
	}
	names, refusal := texts(keys, "names", "name", `{"names": ["mcp__github__create_issue"]}`)
	if refusal != nil {
		return nil, refusal
	}
	names = unique(names)
	if len(names) > maxDescribed {
		return nil, tool.Errorf(tool.BadRequest, "%d names are too many; send at most %d", len(names), maxDescribed)
	}
	return names, nil
}
