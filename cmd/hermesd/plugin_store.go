package main

import (
	"cmp"
	"errors"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/pluginhost/store"
)

// storeOf are the installed plugins of a configuration.
func storeOf(cfg *config.Config) *store.Installed {
	return store.OpenInstalled(filepath.Join(cfg.StateDir, "store"))
}

// argvOf is what a plugin's block starts.
func argvOf(cfg *config.Config, block *config.Plugin) ([]string, error) {
	argv := block.Argv()
	if !block.Installed() {
		return argv, nil
	}
	path, _, err := storeOf(cfg).Find(block.Name)
	return append([]string{path}, argv[1:]...), err
}

func (c *cli) pluginInstallCommand() *cobra.Command {
	var opts store.InstallOptions
	cmd := &cobra.Command{
		Use:   "install PATH|BUNDLE",
		Short: "Install a plugin, so that a block needs no path",
		Long: `Copies a plugin's binary, or this machine's binary out of a bundle, into the plugin store under the
digest of its content. A block of the plugin's name that says neither path nor command starts it.
A daemon that runs takes the new release at once. docs/plugin-authors/bundles.md says what a bundle is.`,
		Example: "  hermesd plugin install ./notes-1.2.0.tar.gz\n  hermesd plugin install --name notes ./bin/notes",
		Args:    cobra.ExactArgs(1),
		RunE: run(func(_ *cobra.Command, args []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			p, err := storeOf(cfg).Install(args[0], opts)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(p)
			}
			sayf(c.out, "installed %s %s (SHA-256 %s)\n", p.Name, cmp.Or(p.Release().Version, "without a version"), p.Release().SHA256)
			for i := range cfg.Plugins {
				if block := &cfg.Plugins[i]; block.Name == p.Name {
					if !block.Installed() {
						sayf(c.out, "plugin %q at %s starts another program; remove its path or command to start this one\n", p.Name, block.Pos)
					}
					return nil
				}
			}
			sayf(c.out, "to use it, write: plugin %q {}\n", p.Name)
			return nil
		}),
	}
	cmd.Flags().StringVar(&opts.Name, "name", "", "the plugin's name (default: what the bundle says, else the file's name)")
	cmd.Flags().StringVar(&opts.Version, "version", "", "its version (default: what the bundle says)")
	return cmd
}

func (c *cli) pluginPinCommand() *cobra.Command {
	var off bool
	cmd := &cobra.Command{
		Use:   "pin NAME",
		Short: "Keep an installed plugin's release from being replaced",
		Args:  cobra.ExactArgs(1),
		RunE: run(func(_ *cobra.Command, args []string) error {
			return c.release(func(s *store.Installed) (*store.Plugin, error) { return s.Pin(args[0], !off) })
		}),
	}
	cmd.Flags().BoolVar(&off, "off", false, "let it be replaced again")
	return cmd
}

func (c *cli) pluginRollbackCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rollback NAME",
		Short: "Go back to the release that was installed before",
		Args:  cobra.ExactArgs(1),
		RunE: run(func(_ *cobra.Command, args []string) error {
			return c.release(func(s *store.Installed) (*store.Plugin, error) { return s.Rollback(args[0]) })
		}),
	}
}

// release changes an installed plugin and says which release is in use.
func (c *cli) release(change func(s *store.Installed) (*store.Plugin, error)) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	p, err := change(storeOf(cfg))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(p)
	}
	return c.printInstalled([]*store.Plugin{p})
}

func (c *cli) pluginVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [NAME]",
		Short: "Hash installed plugins again and compare",
		Args:  cobra.MaximumNArgs(1),
		RunE: run(func(_ *cobra.Command, args []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			list, err := storeOf(cfg).Verify(append(args, "")[0])
			if err != nil {
				return err
			}
			bad := 0
			for _, v := range list {
				if v.Fault != "" {
					bad++
				}
				if !c.json {
					sayf(c.out, "%s: %s\n", v.Name, cmp.Or(v.Fault, "as it was installed"))
				}
			}
			if c.json {
				if err := c.printJSON(list); err != nil {
					return err
				}
			}
			if bad > 0 {
				return &exitError{code: exitFailure, err: errors.New("installed plugins were changed"), silent: true}
			}
			return nil
		}),
	}
}

func (c *cli) listInstalled() error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	list, err := storeOf(cfg).List()
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(list)
	}
	return c.printInstalled(list)
}

func (c *cli) printInstalled(list []*store.Plugin) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	sayf(w, "NAME\tVERSION\tSHA-256\tINSTALLED\tEARLIER\tPINNED\tFROM\n")
	for _, p := range list {
		r := p.Release()
		pinned := ""
		if p.Pinned {
			pinned = "yes"
		}
		sayf(w, "%s\t%s\t%.12s\t%s\t%d\t%s\t%s\n", p.Name, r.Version, r.SHA256, r.Installed.Format(time.DateOnly), len(p.Releases)-1-p.Current, pinned, r.Source)
	}
	return w.Flush()
}
