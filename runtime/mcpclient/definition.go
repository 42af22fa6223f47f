package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	// maxDefinition bounds one tool's definition, in bytes.
	maxDefinition = 1 << 20
	// maxOwnName bounds a tool's own name, in bytes.
	maxOwnName = 256
)

// reservedMeta is the namespace that the protocol keeps for itself in _meta (MCP 2025-11-25, "_meta"): what stands there
// concerns the connection to the server, not the agent.
const reservedMeta = "io.modelcontextprotocol/"

// catalog is what a server's list means under this provider's options.
type catalog struct {
	tools   []tool.Definition
	refused map[tool.Name]string
	params  map[string][]paramHeader // by own name
	remark  string                   // what the operator may want to know; "" for nothing
}

// translate makes definitions of a server's list. What is wrong with one tool refuses that tool only.
func (p *Provider) translate(raws []json.RawMessage) *catalog {
	c := &catalog{refused: map[tool.Name]string{}, params: map[string][]paramHeader{}}
	var unwanted []string
	first := map[tool.Name]int{} // where in raws
	at := map[tool.Name]int{}    // where in c.tools
	for i, raw := range raws {
		d, err := p.definition(raw)
		switch {
		case d == nil:
			p.log.Warn("a tool of the server was refused", "position", i, "reason", err)
			continue
		case !p.wanted(d.OwnName):
			unwanted = append(unwanted, d.OwnName)
			continue
		}
		if before, ok := first[d.Name]; ok {
			if bytes.Equal(raws[before], raw) {
				continue // listed twice
			}
			other := c.tools[at[d.Name]].OwnName
			reason := fmt.Sprintf("the server has two tools that would be named %s: %q and %q", d.Name, other, d.OwnName)
			if _, told := c.refused[d.Name]; !told {
				p.log.Warn("tools of the server were refused", "tool", d.Name, "reason", reason)
			}
			c.refused[d.Name] = reason + "; the server must give each its own name, or exclude one in the block's tools"
			continue
		}
		if err == nil {
			c.params[d.OwnName], err = paramHeaders(d.InputSchema)
		}
		if len(c.params[d.OwnName]) == 0 {
			delete(c.params, d.OwnName)
		}
		if err != nil {
			p.log.Warn("a tool of the server was refused", "tool", d.Name, "reason", err)
			c.refused[d.Name] = p.opts.Mask("the server's definition cannot be used: " + err.Error())
			// It stays in the list so that asking for it gives the reason; nothing else of it is kept.
			d.InputSchema, d.OutputSchema = json.RawMessage(`{"type":"object"}`), nil
		}
		first[d.Name], at[d.Name] = i, len(c.tools)
		c.tools = append(c.tools, *d)
	}
	if len(c.tools) == 0 && len(unwanted) > 0 {
		c.remark = p.opts.Mask(noneLeft(unwanted))
	}
	return c
}

// noneLeft says that include and exclude leave no tool, and names some that there are.
func noneLeft(unwanted []string) string {
	const most = 5
	var names []string
	for _, own := range unwanted[:min(len(unwanted), most)] {
		names = append(names, fmt.Sprintf("%q", own))
	}
	if len(unwanted) > most {
		names = append(names, "…")
	}
	return fmt.Sprintf("include and exclude leave none of the server's %d tools (%s); correct them in the block's tools", len(unwanted), strings.Join(names, ", "))
}

// wanted applies include and exclude.
func (p *Provider) wanted(own string) bool {
	for _, pattern := range p.opts.Exclude {
		if matches(pattern, own) {
			return false
		}
	}
	for _, pattern := range p.opts.Include {
		if matches(pattern, own) {
			return true
		}
	}
	return p.opts.Include == nil
}

// matches compares a name with a pattern in which "*" stands for any characters and "?" for one.
func matches(pattern, name string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(name) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == name[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// fullName is the name under which agents see a tool.
func (p *Provider) fullName(own string) tool.Name {
	prefix := p.prefix()
	if prefix == "" {
		return tool.FullName(own)
	}
	return tool.FullName(prefix, own)
}

// prefix begins its tools' names; "" where they are as the server has them.
func (p *Provider) prefix() string {
	if p.opts.Prefix != nil {
		return *p.opts.Prefix
	}
	return "mcp__" + p.opts.Name
}

// definition translates one tool. It returns nil for what has no name, and both a definition and an error for what is
// malformed otherwise.
func (p *Provider) definition(raw json.RawMessage) (*tool.Definition, error) {
	d := &tool.Definition{
		Source: tool.SourceMCP, SourceName: p.opts.Name, Coldness: tool.External, Timeout: p.opts.Timeout,
	}
	var faults []error
	text := func(key string, value json.RawMessage) string {
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			faults = append(faults, fmt.Errorf("%s is not a string", key))
		}
		return s
	}
	var annotations, execution json.RawMessage
	if !rawjson.Members(raw, func(key string, value json.RawMessage) {
		if rawjson.IsNull(value) {
			return
		}
		switch key {
		case "name":
			d.OwnName, _ = rawjson.String(value)
		case "title":
			d.Title = text(key, value)
		case "description":
			d.Description = text(key, value)
		case "inputSchema":
			d.InputSchema = value
		case "outputSchema":
			d.OutputSchema = value
		case "annotations":
			annotations = value
		case "icons":
			d.Icons = value
		case "_meta":
			d.Meta = withoutReserved(value)
		case "execution":
			execution = value
		}
	}) {
		return nil, errors.New("it is no JSON object")
	}
	if d.OwnName == "" || len(d.OwnName) > maxOwnName {
		return nil, fmt.Errorf("its name is not a text of 1 to %d bytes", maxOwnName)
	}
	d.Name = p.fullName(d.OwnName)
	if len(raw) > maxDefinition {
		faults = append(faults, fmt.Errorf("it has %d bytes; the limit is %d", len(raw), maxDefinition))
	}
	faults = append(faults, objectSchema("inputSchema", d.InputSchema))
	if d.OutputSchema != nil {
		faults = append(faults, objectSchema("outputSchema", d.OutputSchema))
	}
	if annotations != nil {
		faults = append(faults, annotate(d, annotations))
	}
	if !rawjson.IsNull(d.Icons) && d.Icons[0] != '[' {
		faults = append(faults, errors.New("icons is not an array"))
		d.Icons = nil
	}
	if execution != nil {
		faults = append(faults, p.runnable(execution))
	}
	return d, errors.Join(faults...)
}

// objectSchema checks that a schema describes an object. Whether it compiles is for whoever validates with it.
func objectSchema(key string, schema json.RawMessage) error {
	var kind json.RawMessage
	if !rawjson.Members(schema, func(k string, value json.RawMessage) {
		if k == "type" {
			kind = value
		}
	}) {
		return fmt.Errorf("%s is missing or no JSON object", key)
	}
	if kind != nil && string(kind) != `"object"` {
		return fmt.Errorf("%s has type %s instead of \"object\"", key, bounded(string(kind), 40))
	}
	return nil
}

// annotate reads MCP's ToolAnnotations (2025-06-18). What only reads may run side by side with anything.
func annotate(d *tool.Definition, raw json.RawMessage) error {
	var a struct {
		Title       string `json:"title"`
		ReadOnly    *bool  `json:"readOnlyHint"`
		Destructive *bool  `json:"destructiveHint"`
		Idempotent  *bool  `json:"idempotentHint"`
		OpenWorld   *bool  `json:"openWorldHint"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return fmt.Errorf("annotations cannot be read: %w", err)
	}
	if d.Title == "" {
		d.Title = a.Title
	}
	d.Annotations = tool.Annotations{
		ReadOnly: a.ReadOnly, Destructive: a.Destructive, Idempotent: a.Idempotent, OpenWorld: a.OpenWorld,
	}
	if d.Annotations.IsReadOnly() {
		d.Annotations.ParallelSafe = a.ReadOnly
	}
	return nil
}

// runnable refuses tools that run only as tasks (execution.taskSupport) of servers before 2026-07-28, whose tasks were an
// experiment that hermesd takes no part in.
func (p *Provider) runnable(execution json.RawMessage) error {
	var e struct {
		TaskSupport string `json:"taskSupport"`
	}
	if err := json.Unmarshal(execution, &e); err != nil {
		return fmt.Errorf("execution cannot be read: %w", err)
	}
	if e.TaskSupport == "required" && p.legacy.Load() {
		return errors.New("it runs only as a task, for which the server must speak protocol 2026-07-28, and the block must not keep it to an older one")
	}
	return nil
}

// withoutReserved drops the protocol's own keys from a _meta object. Where there are none the bytes stay as they are.
func withoutReserved(meta json.RawMessage) json.RawMessage {
	reserved, kept := false, 0
	isReserved := func(key string) bool { return strings.HasPrefix(key, reservedMeta) || key == "progressToken" }
	rawjson.Members(meta, func(key string, _ json.RawMessage) {
		if isReserved(key) {
			reserved = true
		} else {
			kept++
		}
	})
	switch {
	case kept == 0:
		return nil
	case !reserved:
		return meta
	}
	var b bytes.Buffer
	b.WriteByte('{')
	rawjson.Members(meta, func(key string, value json.RawMessage) {
		if isReserved(key) {
			return
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		writeString(&b, key)
		b.WriteByte(':')
		b.Write(value)
	})
	b.WriteByte('}')
	return b.Bytes()
}
