package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"golang.org/x/mod/modfile"
)

// sdkModule is the module that plugins in Go require.
const sdkModule = "github.com/hermesd/hermesd"

// sdkGo is the version of Go that it asks for.
const sdkGo = "1.26.0"

//go:embed templates
var templates embed.FS

// kinds are the templates with what each is.
var kinds = []struct{ name, about string }{
	{"minimal", "one tool"},
	{"http", "the client of an HTTP API: configuration, a key, errors of the other side"},
	{"stateful", "notes, kept for each agent"},
	{"hook", "decides about calls of other tools"},
}

// pluginName is what a new plugin may be called: a label, a folder, a program and the beginning of tool names.
var pluginName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// newPlugin is what the templates are filled with.
type newPlugin struct {
	Name, Module, Tool, Env string
	Go, SDKModule, SDK      string // SDK is a folder, "" for the published module
	Block, DevFlags         string // what the operator's block and `plugin dev` need besides
}

func (c *cli) pluginNewCommand() *cobra.Command {
	var kind, sdk, dir, module string
	var about []string
	for _, k := range kinds {
		about = append(about, fmt.Sprintf("  %-9s %s", k.name, k.about))
	}
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a new plugin in Go, with its test",
		Long: `Writes a module with a plugin that builds and passes its test, ready for "hermesd plugin dev".

Templates:
` + strings.Join(about, "\n") + `

The module requires the SDK, ` + sdkModule + `. While that is not published, --sdk names a
checkout of it, or GOPROXY the folder that "make sdk" fills there.`,
		Example: "  hermesd plugin new weather --template http --sdk ~/src/hermesd",
		Args:    cobra.ExactArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			p, err := describeNew(args[0], kind, module, sdk)
			if err != nil {
				return err
			}
			if dir == "" {
				dir = p.Name
			}
			if err := writePlugin(dir, kind, p); err != nil {
				return err
			}
			if err := resolve(cmd.Context(), dir, p.SDK); err != nil {
				return err
			}
			sayf(c.out, "%s is written. Next:\n\n  cd %s\n  go test ./...\n  hermesd plugin dev .%s\n", p.Name, dir, p.DevFlags)
			return nil
		}),
	}
	cmd.Flags().StringVar(&kind, "template", "minimal", "what to begin with: minimal, http, stateful or hook")
	cmd.Flags().StringVar(&sdk, "sdk", "", "folder of a hermesd checkout that the module uses in place of the published SDK")
	cmd.Flags().StringVar(&dir, "dir", "", "folder to write to; it must be empty or not there (default: NAME)")
	cmd.Flags().StringVar(&module, "module", "", "path of the new module (default: NAME)")
	return cmd
}

func describeNew(name, kind, module, sdk string) (*newPlugin, error) {
	if !pluginName.MatchString(name) {
		return nil, fmt.Errorf("%q is no name for a plugin: 1 to 32 lower-case letters, digits and hyphens, beginning with a letter", name)
	}
	known := make([]string, len(kinds))
	for i, k := range kinds {
		known[i] = k.name
	}
	if !slices.Contains(known, kind) {
		return nil, fmt.Errorf("there is no template %q; there is: %s", kind, strings.Join(known, ", "))
	}
	p := &newPlugin{
		Name: name, Module: module, Tool: strings.ReplaceAll(name, "-", "_"),
		Env: strings.ToUpper(strings.ReplaceAll(name, "-", "_")), Go: sdkGo, SDKModule: sdkModule,
	}
	if p.Module == "" {
		p.Module = name
	}
	switch kind {
	case "http":
		p.Block = fmt.Sprintf("\n  pass_env = [%q]\n  config {\n    base_url = \"https://api.example.com\"\n  }", p.Env+"_API_KEY")
		p.DevFlags = ` --settings '{"base_url":"https://api.example.com"}' --pass-env ` + p.Env + "_API_KEY"
	case "stateful":
		p.Block = "\n  grant = [\"store\"]"
		p.DevFlags = " --grant store"
	case "hook":
		p.Block = "\n}\n\nhook \"" + name + "\" {\n  on     = \"pre_call\"\n  plugin = \"" + name + "\""
	}
	if sdk == "" {
		return p, nil
	}
	var err error
	if p.SDK, err = filepath.Abs(sdk); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(p.SDK, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("--sdk: %w; name the folder of a hermesd checkout", err)
	}
	if found := modfile.ModulePath(raw); found != sdkModule {
		return nil, fmt.Errorf("--sdk: %s holds the module %q; name the folder of a hermesd checkout", p.SDK, found)
	}
	return p, nil
}

// writePlugin fills the templates in. It writes into an empty folder only.
func writePlugin(dir, kind string, p *newPlugin) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty; name another folder with --dir", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := map[string]string{"go.mod": "go.mod.tmpl", ".gitignore": "gitignore.tmpl", "README.md": "README.md.tmpl"}
	entries, err := templates.ReadDir(path.Join("templates", kind))
	if err != nil {
		return err
	}
	for _, e := range entries {
		files[strings.TrimSuffix(e.Name(), ".tmpl")] = path.Join(kind, e.Name())
	}
	for name, source := range files {
		t, err := template.ParseFS(templates, path.Join("templates", source))
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, p); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	if p.SDK == "" {
		return nil
	}
	// The checkout's sums spare a machine without a network the question for them.
	sums, err := os.ReadFile(filepath.Join(p.SDK, "go.sum"))
	if err != nil {
		return fmt.Errorf("--sdk: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644)
}

// resolve lets the go command write the module's requirements down: what its own packages and tests need. "go mod tidy"
// would also want the tests of its dependencies, and with them a network where the module cache would do.
func resolve(ctx context.Context, dir, sdk string) error {
	steps := [][]string{{"list", "-mod=mod", "-deps", "-test", "./..."}}
	if sdk == "" {
		steps = slices.Insert(steps, 0, []string{"get", sdkModule + "/pluginsdk@latest"})
	}
	for _, args := range steps {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = dir
		var said bytes.Buffer
		cmd.Stderr = &said
		err := cmd.Run()
		switch {
		case errors.Is(err, exec.ErrNotFound):
			return fmt.Errorf("%s is written, but there is no go command here: install Go %s or newer, and run there: go mod tidy", dir, sdkGo)
		case err != nil && sdk == "":
			return fmt.Errorf("%s is written, but \"go %s\" failed: %w\n%sWhile %s is not published, remove the folder and use --sdk with a checkout of it, or run \"make sdk\" there and set GOPROXY as it says",
				dir, strings.Join(args, " "), err, &said, sdkModule)
		case err != nil:
			return fmt.Errorf("%s is written, but \"go %s\" failed: %w\n%sLook at what it says, and run there: go mod tidy", dir, strings.Join(args, " "), err, &said)
		}
	}
	return nil
}
