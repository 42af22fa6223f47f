package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// group makes the commands below cmd that only hold others refuse a name that they do not hold. Alone they print their help.
// (Cobra prints the help in both cases, as if nothing were wrong.)
func group(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		group(sub)
	}
	if cmd.Runnable() || !cmd.HasSubCommands() {
		return
	}
	cmd.DisableFlagsInUseLine = true
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// maxSlips is how many letters a name may differ by from the one that was meant.
const maxSlips = 2

// unknownCommand is an error of usage that names what was meant, or all that there is.
func unknownCommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = maxSlips
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return fmt.Errorf("unknown command %q for %q; did you mean %s?", name, cmd.CommandPath(), strings.Join(near, " or "))
	}
	var known []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	if known == nil {
		return fmt.Errorf("unknown command %q for %q, which has none", name, cmd.CommandPath())
	}
	return fmt.Errorf("unknown command %q for %q; it has %s", name, cmd.CommandPath(), strings.Join(known, ", "))
}

// helpCommand explains a command, and refuses one that is not there, which cobra's own does not.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]...",
		Short: "Explain a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(cmd, rest[0])
			}
			return cmd.Help()
		},
	}
}
