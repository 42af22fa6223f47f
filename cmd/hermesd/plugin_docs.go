package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/wire"
)

func (c *cli) pluginDocsCommand() *cobra.Command {
	var p program
	cmd := &cobra.Command{
		Use:     "docs BINARY|FOLDER [ARGUMENT...]",
		Short:   "Print a Markdown page about a plugin and its tools",
		Long:    "Asks a plugin what it is and prints a page with its configuration and every tool's arguments, from\ntheir schemas. A folder is built with the go command first. No daemon is needed.",
		Example: "  hermesd plugin docs . > TOOLS.md",
		Args:    cobra.MinimumNArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			target, cleanup, err := p.target(cmd.Context(), args)
			if err != nil {
				return err
			}
			d, tools, err := p.introduce(cmd.Context(), target)
			if err := errors.Join(err, cleanup()); err != nil {
				return err
			}
			_, err = sayf(c.out, "%s", lines(page(d, tools)))
			return err
		}),
	}
	cmd.Flags().SetInterspersed(false)
	p.flags(cmd)
	return cmd
}

// target is what args name: a program with its arguments, or a folder, which is built. cleanup removes what was built.
func (p *program) target(ctx context.Context, args []string) (target wire.Program, cleanup func() error, err error) {
	env, err := p.environment()
	if err != nil {
		return wire.Program{}, nil, err
	}
	target, cleanup = wire.Program{Path: args[0], Args: args[1:], Env: env}, func() error { return nil }
	if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
		return target, cleanup, nil
	}
	dir, err := os.MkdirTemp("", "hermesd-build-")
	if err != nil {
		return wire.Program{}, nil, err
	}
	target.Path = filepath.Join(dir, "plugin")
	if said, err := buildPlugin(ctx, args[0], target.Path); err != nil {
		return wire.Program{}, nil, errors.Join(fmt.Errorf("go build in %s: %w\n%s", args[0], err, said), os.RemoveAll(dir))
	}
	return target, func() error { return os.RemoveAll(dir) }, nil
}

// buildPlugin builds the main package in a folder and returns what the go command said.
func buildPlugin(ctx context.Context, dir, program string) (said string, err error) {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		err = fmt.Errorf("there is no go command here: install Go %s or newer", sdkGo)
	}
	return string(bytes.TrimSpace(out)), err
}

// introduce asks a plugin what it is. Without a configuration only those tools are known that do not depend on one.
func (p *program) introduce(ctx context.Context, target wire.Target) (d *pb.DescribeResponse, tools []*pb.ToolDefinition, err error) {
	config, err := p.configuration()
	if err != nil {
		return nil, nil, err
	}
	s, err := target.Open(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if d, err = s.Describe(ctx, &pb.DescribeRequest{}); err != nil {
		return nil, nil, err
	}
	if config != nil {
		diags, err := s.Configure(ctx, config, d.GetName(), os.TempDir())
		if err != nil {
			return nil, nil, err
		}
		for _, diag := range diags {
			if diag.GetSeverity() == pb.Diagnostic_SEVERITY_ERROR {
				return nil, nil, fmt.Errorf("--settings: %s: %s %s", diag.GetPath(), diag.GetSummary(), diag.GetDetail())
			}
		}
	}
	tools, _, err = s.Tools(ctx)
	return d, tools, err
}

// page is the Markdown.
func page(d *pb.DescribeResponse, tools []*pb.ToolDefinition) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s %s\n", d.GetName(), d.GetVersion())
	for _, line := range []string{d.GetDescription(), d.GetHomepage(), d.GetLicense()} {
		if line != "" {
			fmt.Fprintf(&b, "\n%s\n", line)
		}
	}
	if list := d.GetCapabilities(); len(list) > 0 {
		fmt.Fprintf(&b, "\nIt asks for: `%s`.\n", strings.Join(list, "`, `"))
	}
	if len(d.GetConfigSchema()) > 0 {
		b.WriteString("\n## Configuration\n")
		writeTable(&b, "Key", d.GetConfigSchema())
	}
	for _, t := range tools {
		fmt.Fprintf(&b, "\n## `%s`\n\n%s\n", t.GetName(), t.GetDescription())
		if facts := factsOf(t); facts != "" {
			fmt.Fprintf(&b, "\n%s\n", facts)
		}
		writeTable(&b, "Argument", t.GetInputSchema())
		if len(t.GetOutputSchema()) > 0 {
			b.WriteString("\nIt answers:\n")
			writeTable(&b, "Key", t.GetOutputSchema())
		}
		for _, e := range t.GetExamples() {
			fmt.Fprintf(&b, "\n```json\n%s\n```\n", e)
		}
	}
	return b.String()
}

func factsOf(t *pb.ToolDefinition) string {
	var facts []string
	add := func(yes bool, text string) {
		if yes {
			facts = append(facts, text)
		}
	}
	a := t.GetAnnotations()
	add(t.GetToolset() != "", "toolset `"+t.GetToolset()+"`")
	add(a.GetReadOnly(), "changes nothing")
	add(!a.GetReadOnly() && (a.GetDestructive() || a == nil || a.Destructive == nil), "may destroy something")
	add(a.GetIdempotent(), "a second call changes nothing more")
	add(a != nil && a.OpenWorld != nil && !a.GetOpenWorld(), "stays on this machine")
	add(len(t.GetRequiresEnv()) > 0, "needs `"+strings.Join(t.GetRequiresEnv(), "`, `")+"` in its environment")
	if len(facts) == 0 {
		return ""
	}
	text := strings.Join(facts, "; ") + "."
	return strings.ToUpper(text[:1]) + text[1:]
}

// node is what the page shows of a schema.
type node struct {
	Type        any             `json:"type"`
	Description string          `json:"description"`
	Enum        []any           `json:"enum"`
	Const       any             `json:"const"`
	Default     json.RawMessage `json:"default"`
	Minimum     *float64        `json:"minimum"`
	Maximum     *float64        `json:"maximum"`
	MinLength   *int            `json:"minLength"`
	MaxLength   *int            `json:"maxLength"`
	Pattern     string          `json:"pattern"`
	Format      string          `json:"format"`
	Required    []string        `json:"required"`
	Properties  ordered         `json:"properties"`
	Items       *node           `json:"items"`
}

// ordered keeps the properties of an object in the order in which they are written.
type ordered []property

type property struct {
	name string
	node node
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *ordered) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		p := property{name: fmt.Sprint(name)}
		if err := d.Decode(&p.node); err != nil {
			var wrong *json.UnmarshalTypeError
			if !errors.As(err, &wrong) { // true and false are schemas, too: they say nothing
				return err
			}
		}
		*o = append(*o, p)
	}
	return nil
}

// writeTable prints an object's properties, those of objects within it with their path.
func writeTable(b *strings.Builder, head string, raw []byte) {
	var n node
	if err := json.Unmarshal(raw, &n); err != nil {
		fmt.Fprintf(b, "\nThe schema cannot be read: %v\n", err)
		return
	}
	if len(n.Properties) == 0 {
		fmt.Fprintf(b, "\nNo %ss.\n", strings.ToLower(head))
		return
	}
	fmt.Fprintf(b, "\n| %s | Type | Required | Meaning |\n| --- | --- | --- | --- |\n", head)
	writeRows(b, "", &n)
}

func writeRows(b *strings.Builder, path string, n *node) {
	for _, p := range n.Properties {
		needed := "no"
		if slices.Contains(n.Required, p.name) {
			needed = "yes"
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s | %s |\n", path, p.name, p.node.kind(), needed, cell(p.node.meaning()))
		writeRows(b, path+p.name+".", &p.node)
		if p.node.Items != nil {
			writeRows(b, path+p.name+"[].", p.node.Items)
		}
	}
}

func (n *node) kind() string {
	switch t := n.Type.(type) {
	case string:
		if t == "array" && n.Items != nil {
			return "array of " + n.Items.kind()
		}
		return t
	case []any:
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(t), "[]"), " ", " or ")
	}
	return "any"
}

// meaning is the description with what else the schema asks for.
func (n *node) meaning() string {
	parts := []string{n.Description}
	add := func(yes bool, format string, args ...any) {
		if yes {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(len(n.Enum) > 0, "one of %s", values(n.Enum))
	if n.Items != nil {
		add(len(n.Items.Enum) > 0, "each of %s", values(n.Items.Enum))
	}
	add(n.Const != nil, "always %s", values([]any{n.Const}))
	add(n.Minimum != nil, "at least %v", deref(n.Minimum))
	add(n.Maximum != nil, "at most %v", deref(n.Maximum))
	add(n.MinLength != nil, "at least %v characters", deref(n.MinLength))
	add(n.MaxLength != nil, "at most %v characters", deref(n.MaxLength))
	add(n.Pattern != "", "matches `%s`", n.Pattern)
	add(n.Format != "", "format %s", n.Format)
	add(len(n.Default) > 0, "default `%s`", n.Default)
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func values(list []any) string {
	texts := make([]string, len(list))
	for i, v := range list {
		raw, err := json.Marshal(v)
		if err != nil {
			raw = []byte(fmt.Sprint(v))
		}
		texts[i] = "`" + strings.Trim(string(raw), `"`) + "`"
	}
	return strings.Join(texts, ", ")
}

// cell keeps a text inside its cell of a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}
