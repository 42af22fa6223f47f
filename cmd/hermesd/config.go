package main

import (
	"bytes"
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/internal/atomicfile"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/daemon"
)

func (c *cli) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check, show and format the configuration"}
	cmd.AddCommand(c.configCheckCommand(), c.configShowCommand(), c.configFormatCommand())
	return cmd
}

func (c *cli) configCheckCommand() *cobra.Command {
	var plugins bool
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Say everything that is wrong with the configuration",
		Long:  "Reads the configuration and the files of conf.d beside it, starts nothing, and prints every\nfault with its file, line and the nearest known name. As in the daemon, every secret must be there; for\nvariables that its unit has from a file, first: set -a; . FILE; set +a.",
		Args:  cobra.MaximumNArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			path, _ := c.path()
			if len(args) == 1 {
				path = args[0]
			}
			cfg, diags := config.Load(path, nil)
			diags = withPolicy(cfg, diags)
			if plugins && !diags.HasErrors() {
				said, err := checkPlugins(cmd.Context(), cfg)
				if err != nil {
					return err
				}
				diags = diags.And(said)
			}
			if c.json {
				raw, err := diags.JSON()
				if err != nil {
					return err
				}
				if err := c.printLines([][]byte{raw}); err != nil {
					return err
				}
			} else if _, err := diags.WriteTo(c.err); err != nil {
				return err
			}
			if diags.HasErrors() {
				c.configPath = path
				if why := c.missingHere(); why != nil && !c.json {
					sayf(c.err, "%s\n", why)
				}
				return &exitError{code: exitFailure, err: errors.New("the configuration has errors"), silent: true}
			}
			if !c.json {
				sayf(c.out, "%s is valid\n", path)
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&plugins, "plugins", false, "also start each plugin for a moment and ask it about its config block")
	return cmd
}

// withPolicy adds what is wrong with the rules to what is wrong with the rest.
func withPolicy(cfg *config.Config, diags config.Diagnostics) config.Diagnostics {
	if diags.HasErrors() || slices.ContainsFunc(cfg.Unread, func(u config.Unread) bool { return u.Within("rule") }) {
		return diags
	}
	_, found := daemon.NewPolicy(cfg, nil)
	return diags.And(found)
}

func (c *cli) configShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Print the merged configuration with its defaults, secrets masked",
		Long:  "Prints the configuration with the files of conf.d and all defaults, as it can be loaded again; secrets are\nnot shown, but must be there, as for `hermesd config check`.",
		Args:  cobra.NoArgs,
		RunE: run(func(*cobra.Command, []string) error {
			cfg, err := c.loadWhole()
			if err != nil {
				return err
			}
			if c.json {
				return cfg.ShowJSON(c.out)
			}
			return cfg.Show(c.out)
		}),
	}
}

func (c *cli) configFormatCommand() *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:   "fmt [FILE]",
		Short: "Format the configuration",
		Args:  cobra.MaximumNArgs(1),
		RunE: run(func(_ *cobra.Command, args []string) error {
			path, _ := c.path()
			if len(args) == 1 {
				path = args[0]
			}
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			formatted, diags := config.Format(path, src)
			if diags.HasErrors() {
				if _, err := diags.WriteTo(c.err); err != nil {
					return err
				}
				return &exitError{code: exitFailure, err: diags.Err(), silent: true}
			}
			switch {
			case !write:
				_, err = c.out.Write(formatted)
				return err
			case bytes.Equal(src, formatted):
				return nil
			default:
				return atomicfile.Rewrite(path, formatted)
			}
		}),
	}
	cmd.Flags().BoolVarP(&write, "write", "w", false, "write the file instead of printing it")
	return cmd
}
