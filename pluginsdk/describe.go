package pluginsdk

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// description is what `describe` prints.
type description struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Description  string            `json:"description,omitempty"`
	Homepage     string            `json:"homepage,omitempty"`
	License      string            `json:"license,omitempty"`
	Contract     [2]uint32         `json:"contract"` // the oldest and the newest version
	SDK          string            `json:"sdk"`
	Capabilities []string          `json:"capabilities,omitempty"`
	ConfigSchema json.RawMessage   `json:"config_schema,omitempty"`
	Tools        []toolDescription `json:"tools"`
}

type toolDescription struct {
	Name           string            `json:"name"`
	Toolset        string            `json:"toolset,omitempty"`
	Title          string            `json:"title,omitempty"`
	Description    string            `json:"description,omitempty"`
	InputSchema    json.RawMessage   `json:"input_schema"`
	OutputSchema   json.RawMessage   `json:"output_schema,omitempty"`
	Coldness       string            `json:"coldness,omitempty"`
	Annotations    map[string]bool   `json:"annotations,omitempty"`
	Keywords       []string          `json:"keywords,omitempty"`
	Examples       []json.RawMessage `json:"examples,omitempty"`
	RequiresEnv    []string          `json:"requires_env,omitempty"`
	TimeoutMS      uint64            `json:"timeout_ms,omitempty"`
	MaxResultBytes uint64            `json:"max_result_bytes,omitempty"`
	Meta           json.RawMessage   `json:"meta,omitempty"`
}

func describePlugin(d *pb.DescribeResponse, tools []*pb.ToolDefinition) description {
	out := description{
		Name: d.GetName(), Version: d.GetVersion(), Description: d.GetDescription(), Homepage: d.GetHomepage(),
		License: d.GetLicense(), Contract: [2]uint32{d.GetContractMin(), d.GetContractMax()}, SDK: d.GetBuild().GetSdk(),
		Capabilities: d.GetCapabilities(), ConfigSchema: d.GetConfigSchema(), Tools: []toolDescription{},
	}
	for _, t := range tools {
		td := toolDescription{
			Name: t.GetName(), Toolset: t.GetToolset(), Title: t.GetTitle(), Description: t.GetDescription(),
			InputSchema: t.GetInputSchema(), OutputSchema: t.GetOutputSchema(), Coldness: t.GetColdness(),
			Annotations: annotations(t.GetAnnotations()), Keywords: t.GetKeywords(), RequiresEnv: t.GetRequiresEnv(),
			TimeoutMS: t.GetTimeoutMs(), MaxResultBytes: t.GetMaxResultBytes(), Meta: t.GetMeta(),
		}
		for _, e := range t.GetExamples() {
			td.Examples = append(td.Examples, e)
		}
		out.Tools = append(out.Tools, td)
	}
	return out
}

// annotations holds those that the author set.
func annotations(a *pb.Annotations) map[string]bool {
	set := map[string]bool{}
	for name, value := range map[string]*bool{
		"read_only": a.ReadOnly, "destructive": a.Destructive, "idempotent": a.Idempotent,
		"open_world": a.OpenWorld, "parallel_safe": a.ParallelSafe,
	} {
		if value != nil {
			set[name] = *value
		}
	}
	return set
}

// docs prints a Markdown page: what the plugin is, its configuration, and every tool with its parameters.
func (h *hand) docs(ctx context.Context, c pb.PluginClient) error {
	d, err := c.Describe(ctx, &pb.DescribeRequest{})
	if err != nil {
		return err
	}
	tools, err := h.tools(ctx, c)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s %s\n", d.GetName(), d.GetVersion())
	if d.GetDescription() != "" {
		fmt.Fprintf(&b, "\n%s\n", d.GetDescription())
	}
	if caps := d.GetCapabilities(); len(caps) > 0 {
		fmt.Fprintf(&b, "\nCapabilities that it asks for: `%s`.\n", strings.Join(caps, "`, `"))
	}
	if len(d.GetConfigSchema()) > 0 {
		b.WriteString("\n## Configuration\n")
		if err := parameterTable(&b, d.GetConfigSchema()); err != nil {
			return err
		}
	}
	for _, t := range tools {
		if err := toolPage(&b, t); err != nil {
			return fmt.Errorf("tool %q: %w", t.GetName(), err)
		}
	}
	_, err = fmt.Fprint(h.stdout, b.String())
	return err
}

func toolPage(b *strings.Builder, t *pb.ToolDefinition) error {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", t.GetName(), t.GetDescription())
	var facts []string
	if t.GetToolset() != "" {
		facts = append(facts, "toolset `"+t.GetToolset()+"`")
	}
	set := annotations(t.GetAnnotations())
	for _, name := range []string{"read_only", "destructive", "idempotent", "open_world", "parallel_safe"} {
		if yes, ok := set[name]; ok && yes {
			facts = append(facts, strings.ReplaceAll(name, "_", "-"))
		} else if ok {
			facts = append(facts, "not "+strings.ReplaceAll(name, "_", "-"))
		}
	}
	if env := t.GetRequiresEnv(); len(env) > 0 {
		facts = append(facts, "needs `"+strings.Join(env, "`, `")+"` in its environment")
	}
	if len(facts) > 0 {
		fmt.Fprintf(b, "\n%s.\n", strings.ToUpper(facts[0][:1])+strings.Join(facts, ", ")[1:])
	}
	if err := parameterTable(b, t.GetInputSchema()); err != nil {
		return err
	}
	for _, e := range t.GetExamples() {
		fmt.Fprintf(b, "\n```json\n%s\n```\n", e)
	}
	return nil
}

// parameterTable prints the top level of an object's schema.
func parameterTable(b *strings.Builder, raw json.RawMessage) error {
	s, err := compileSchema(raw, false)
	if err != nil {
		return err
	}
	if len(s.root.Properties) == 0 {
		b.WriteString("\nNo parameters.\n")
		return nil
	}
	b.WriteString("\n| Name | Type | Required | Meaning |\n| --- | --- | --- | --- |\n")
	for _, name := range propertyNames(raw) {
		p := s.root.Properties[name]
		var meaning []string
		if p.Description != "" {
			meaning = append(meaning, strings.TrimSuffix(p.Description, "."))
		}
		if p.Enum != nil {
			values := make([]string, len(p.Enum))
			for i, v := range p.Enum {
				values[i] = fmt.Sprintf("`%v`", v)
			}
			meaning = append(meaning, "One of "+strings.Join(values, ", "))
		}
		if p.Default != nil {
			meaning = append(meaning, fmt.Sprintf("Default `%s`", p.Default))
		}
		needed := "no"
		if slices.Contains(s.root.Required, name) {
			needed = "yes"
		}
		kind := p.Type
		if kind == "" {
			kind = strings.Join(p.Types, " or ")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, kind, needed, tableCell(strings.Join(meaning, ". ")))
	}
	return nil
}

// tableCell makes a text fit into a Markdown table: on one line, and without a bar that would end the cell.
func tableCell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// propertyNames returns the names of an object schema's properties in the order in which they are written.
func propertyNames(raw json.RawMessage) []string {
	var s struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(string(s.Properties)))
	var names []string
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return names
		}
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return names
		}
		if text, ok := name.(string); ok {
			names = append(names, text)
		}
	}
	return names
}
