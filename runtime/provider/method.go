package provider

import (
	"encoding/json"

	"github.com/hermesd/hermesd/runtime/tool"
)

// methods are what can be asked of a library: a title for humans, and the schema of MCP's params without _meta.
var methods = map[string]struct {
	title  string
	schema json.RawMessage
}{
	ReadResource: {"Read a resource", uriSchema},
	Subscribe:    {"Watch a resource", uriSchema},
	GetPrompt: {"Get a prompt", json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},` +
		`"arguments":{"type":"object","additionalProperties":{"type":"string"}}},"required":["name"]}`)},
	Complete: {"Complete an argument", json.RawMessage(`{"type":"object","properties":{"ref":{"type":"object"},` +
		`"argument":{"type":"object"},"context":{"type":"object"}},"required":["ref","argument"]}`)},
}

var uriSchema = json.RawMessage(`{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"]}`)

// Methods lists what can be asked of a library.
func Methods() []string { return []string{ReadResource, Subscribe, GetPrompt, Complete} }

// MethodDefinition describes a method of a library as a tool, so that a request to it passes the stages, and meets the
// rules, hooks and records, of a call. Its arguments are MCP's params, with the server's own names. Its own name is
// "SOURCE__LABEL__METHOD", such as "mcp__github__resources/read"; with the slash it is never a tool's ([tool.ValidName]).
func MethodDefinition(l Library, method string) *tool.Definition {
	id, m, yes := l.Identity(), methods[method], true
	d := &tool.Definition{
		Name: tool.FullName(string(id.Source), id.Name) + "__" + method, OwnName: method, Source: id.Source, SourceName: id.Name,
		Title: m.title, InputSchema: m.schema, Coldness: tool.External,
		Annotations: tool.Annotations{ReadOnly: &yes, Idempotent: &yes, ParallelSafe: &yes},
	}
	if shelf := l.Shelf(); shelf != nil {
		d.Timeout = shelf.Timeout
	}
	return d
}
