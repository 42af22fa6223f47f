package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// groups are all commands that hold others, as people type them.
func groups(cmd *cobra.Command) [][]string {
	var list [][]string
	if cmd.HasSubCommands() {
		list = append(list, strings.Fields(cmd.CommandPath())[1:])
	}
	for _, sub := range cmd.Commands() {
		list = append(list, groups(sub)...)
	}
	return list
}

func TestEveryGroupRefusesWhatItDoesNotHold(t *testing.T) {
	all := groups((&cli{in: strings.NewReader(""), out: io.Discard, err: io.Discard}).root())
	if len(all) < 9 { // the root, tool, plugin, mcp-server, agent, approvals, audit, policy, config
		t.Fatalf("only %q", all)
	}
	for _, group := range all {
		t.Run("hermesd "+strings.Join(group, " "), func(t *testing.T) {
			for _, args := range [][]string{{"frobnicate"}, {"frobnicate", "--json"}, {"--json", "frobnicate"}} {
				var out, errOut bytes.Buffer
				code := execute(context.Background(), append(append([]string{}, group...), args...), nil, &out, &errOut)
				if code != exitUsage || out.Len() > 0 {
					t.Errorf("%q: exit code %d, and on standard output: %s", args, code, out.String())
				}
				name := strings.Join(append([]string{"hermesd"}, group...), " ")
				if said := errOut.String(); !strings.Contains(said, `unknown command "frobnicate" for "`+name+`"; it has `) || !strings.Contains(said, "See `"+name+" --help`") {
					t.Errorf("%q: %s", args, said)
				}
			}
			var out, errOut bytes.Buffer
			if code := execute(context.Background(), group, nil, &out, &errOut); code != exitOK || !strings.Contains(out.String(), "Available Commands:") {
				t.Errorf("alone: exit code %d: %s%s", code, out.String(), errOut.String())
			}
		})
	}
}

func TestAnUnknownCommandNamesWhatWasMeant(t *testing.T) {
	for line, want := range map[string]string{
		"tol":                  "did you mean tool?",
		"tool serach":          "did you mean search?",
		"mcp-server lgin":      "did you mean login?",
		"help tool serach":     "did you mean search?",
		"help frobnicate":      "it has agent, approvals",
		"help tool list extra": `unknown command "extra" for "hermesd tool list", which has none`,
	} {
		t.Run(line, func(t *testing.T) {
			var out, errOut bytes.Buffer
			if code := execute(context.Background(), strings.Fields(line), nil, &out, &errOut); code != exitUsage || !strings.Contains(errOut.String(), want) {
				t.Errorf("exit code %d: %s%s", code, out.String(), errOut.String())
			}
		})
	}
}
