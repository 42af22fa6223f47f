package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/cmd/hermesd/importer"
	"github.com/hermesd/hermesd/runtime/config"
)

func (c *cli) importCommand() *cobra.Command {
	var out, envFile string
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Make configuration of the files of Claude, Cursor, VS Code and Hermes",
		Long: `Reads the files in which other programs keep their MCP servers (claude_desktop_config.json,
.mcp.json, Cursor's and VS Code's mcp.json, settings.json, Hermes' config.yaml) and writes
them as mcp_server blocks, for a file in conf.d beside the configuration.

Secrets are not written into it: they become secret("env:NAME"), and --env-file writes
NAME="value" lines, for systemd's EnvironmentFile= or a shell, readable for you alone.
What became a secret, what could not be carried over as it was, and what is switched off
since it cannot work, is listed on standard error.`,
		Example: `  hermesd import ~/.cursor/mcp.json --out ~/.config/hermesd/conf.d/cursor.hcl --env-file ~/.config/hermesd/secrets.env`,
		Args:    cobra.MinimumNArgs(1),
		RunE: run(func(_ *cobra.Command, args []string) error {
			result, err := c.readImport(args)
			if err != nil {
				return err
			}
			if envFile != "" {
				if err := writeNew(envFile, result.EnvFile()); err != nil {
					return err
				}
			}
			if out != "" {
				if err := writeNew(out, result.HCL()); err != nil {
					return err
				}
			}
			return c.printImport(result, out, envFile)
		}),
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "file to write, which must not exist yet (default: standard output)")
	cmd.Flags().StringVar(&envFile, "env-file", "", "file to write the secrets to, which must not exist yet (default: they are named, not written)")
	return cmd
}

// readImport reads the files. Names that the present configuration uses are not used again.
func (c *cli) readImport(paths []string) (*importer.Result, error) {
	var files []importer.File
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		data, err := readFile(absolute, importer.MaxFile)
		if err != nil {
			return nil, err
		}
		files = append(files, importer.File{Path: absolute, Data: data})
	}
	opts := c.present()
	if home, err := os.UserHomeDir(); err == nil {
		opts.Home = home
	}
	return importer.Read(files, opts)
}

// readFile reads a file of at most one byte more than most, for whoever says what is too long.
func readFile(path string, most int64) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err = io.ReadAll(io.LimitReader(f, most+1))
	return data, errors.Join(err, f.Close())
}

// present is what the present machine and configuration have. A configuration that cannot be read has nothing: an import is
// what makes the first.
func (c *cli) present() *importer.Options {
	wanted := map[string]bool{} // variables that it reads and that are not set here
	opts := &importer.Options{
		LookupEnv: func(name string) (string, bool) {
			value, ok := os.LookupEnv(name)
			return value, ok || wanted[name]
		},
		Exists: func(path string) bool {
			_, err := os.Stat(path)
			return err == nil
		},
	}
	path, _ := c.path()
	cfg, diags := config.Load(path, here())
	if diags.HasErrors() {
		return opts
	}
	for i := range cfg.Plugins {
		opts.Taken = append(opts.Taken, cfg.Plugins[i].Name)
	}
	for i := range cfg.MCPServers {
		opts.Taken = append(opts.Taken, cfg.MCPServers[i].Name)
	}
	for _, u := range cfg.Unread {
		if name, ok := strings.CutPrefix(u.Source, `secret("env:`); ok {
			wanted[strings.TrimSuffix(name, `")`)] = true
		}
	}
	return opts
}

// writeNew writes a file for the user alone, and replaces none.
func writeNew(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists; name another file, or remove it first", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func (c *cli) printImport(result *importer.Result, out, envFile string) error {
	if c.json {
		type note struct {
			File   string `json:"file"`
			Server string `json:"server,omitempty"`
			Key    string `json:"key,omitempty"`
			Text   string `json:"text"`
		}
		report := struct {
			Servers   []string `json:"servers"`
			Variables []string `json:"variables"`
			Notes     []note   `json:"notes"`
			HCL       string   `json:"hcl,omitempty"`
		}{Variables: []string{}, Notes: []note{}}
		for i := range result.Servers {
			report.Servers = append(report.Servers, result.Servers[i].Name)
		}
		for _, s := range result.Variables {
			report.Variables = append(report.Variables, s.Env)
		}
		for _, n := range result.Notes {
			report.Notes = append(report.Notes, note(n))
		}
		if out == "" {
			report.HCL = string(result.HCL())
		}
		return c.printJSON(report)
	}
	if out == "" {
		if _, err := c.out.Write(result.HCL()); err != nil {
			return err
		}
	}
	for _, n := range result.Notes {
		sayf(c.err, "%s\n", n)
	}
	if len(result.Variables) > 0 {
		sayf(c.err, "These environment variables must be set for hermesd serve:\n")
		for _, s := range result.Variables {
			missing := ""
			if s.Value == "" {
				missing = " (the file did not have its value)"
			}
			sayf(c.err, "  %s%s\n", s.Env, missing)
		}
		if envFile != "" {
			sayf(c.err, "Those that the files had are in %s; in a shell: set -a; . %s; set +a\n", envFile, envFile)
		}
	}
	if out != "" {
		sayf(c.out, "%d servers written to %s; check them with: hermesd mcp-server test NAME\n", len(result.Servers), out)
	}
	return nil
}
