package main

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/runtime/pluginhost/store"
)

func (c *cli) pluginLockCommand() *cobra.Command {
	var diff, all bool
	cmd := &cobra.Command{
		Use:   "lock [NAME...]",
		Short: "Accept a provider's changed binary or tools, after looking at what changed",
		Long: `The lock file holds the digest of every provider's binary and tool definitions as they were first
seen. What changed since does not start, or is not offered, until it is accepted here. Without a
name, this lists what waits. A running daemon takes a decision over at once.`,
		Example: "  hermesd plugin lock --diff github\n  hermesd plugin lock github",
		RunE: run(func(_ *cobra.Command, args []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			dir := filepath.Join(cfg.StateDir, "trust")
			if all && len(args) > 0 {
				return &exitError{code: exitUsage, err: errors.New("--all and a name contradict each other")}
			}
			if diff || len(args) == 0 && !all {
				return c.showWaiting(dir, args)
			}
			if all {
				if args, err = waitingNames(dir); err != nil {
					return err
				}
			}
			return c.accept(dir, args)
		}),
	}
	cmd.Flags().BoolVar(&diff, "diff", false, "only show what changed, field by field")
	cmd.Flags().BoolVar(&all, "all", false, "accept what waits of every provider")
	return cmd
}

func waitingNames(dir string) ([]string, error) {
	changes, err := store.Waiting(dir, "")
	var names []string
	for _, ch := range changes {
		names = append(names, ch.Provider)
	}
	return slices.Compact(names), err
}

func (c *cli) showWaiting(dir string, names []string) error {
	if len(names) == 0 {
		names = []string{""}
	}
	changes := []store.Change{}
	for _, name := range names {
		some, err := store.Waiting(dir, name)
		if err != nil {
			return err
		}
		changes = append(changes, some...)
	}
	if c.json {
		return c.printJSON(changes)
	}
	if len(changes) == 0 {
		sayf(c.out, "nothing waits to be accepted\n")
	}
	c.printChanges(changes)
	return nil
}

func (c *cli) accept(dir string, names []string) error {
	accepted := []store.Change{}
	for _, name := range names {
		changes, err := store.Accept(dir, name)
		if err != nil {
			return err
		}
		accepted = append(accepted, changes...)
		if len(changes) == 0 && !c.json {
			sayf(c.out, "nothing of %s waits to be accepted\n", name)
		}
	}
	if c.json {
		return c.printJSON(accepted)
	}
	c.printChanges(accepted)
	if len(accepted) > 0 {
		sayf(c.out, "accepted %d changes\n", len(accepted))
	}
	return nil
}

// printChanges shows what is different now, with everything quoted that a provider wrote.
func (c *cli) printChanges(changes []store.Change) {
	for _, ch := range changes {
		if ch.Tool == "" {
			sayf(c.out, "%s: its binary: %s is now %s\n", ch.Provider, cmp.Or(ch.Before, "(nobody knows)"), ch.After)
			continue
		}
		sayf(c.out, "%s: tool %q\n", ch.Provider, ch.Tool)
		if ch.Differences == nil {
			sayf(c.out, "  what was accepted before is not known any more; look at the whole definition: hermesd tool describe\n")
		}
		for _, d := range ch.Differences {
			sayf(c.out, "  %s\n", d.Field)
			if d.Before != "" {
				sayf(c.out, "    - %s\n", d.Before)
			}
			if d.After != "" {
				sayf(c.out, "    + %s\n", d.After)
			}
		}
		for _, f := range ch.Findings {
			sayf(c.out, "  ! %s in %s: %s\n", f.Kind, cmp.Or(f.Field, "it"), f.Detail)
		}
	}
}
