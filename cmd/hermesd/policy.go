package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/runtime/daemon"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/tool"
)

const policyFile = `CALL.json is one call:

  {"agent": "desk", "tool": "terminal", "arguments": {"command": "git push --force"}}

The rules are those of the configuration file, so that a change can be tried before the daemon has it. What the tool
is (whether it is destructive and so on) is asked of the running daemon; without one, describe the tool in place of its
name: {"name": "terminal", "source": "builtin", "annotations": {"destructive": true}}. Further keys: session,
attended, and expect (allow, ask or deny): the exit code is 1 if something else comes out. - reads standard input.`

func (c *cli) policyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "See which rule decides a call", Long: "Holds a call against the rules, without running it.\n\n" + policyFile}
	cmd.AddCommand(
		c.policyTryCommand("test", "Say what would become of a call", c.printVerdict),
		c.policyTryCommand("explain", "Say what every rule makes of a call", c.printTraces),
	)
	return cmd
}

func (c *cli) policyTryCommand(use, short string, show func(*daemon.Verdict) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " CALL.json", Short: short, Long: short + ".\n\n" + policyFile, Args: cobra.ExactArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			cfg, err := c.load("default_action", "rule", "agent", "approvals.mode", "listen.admin", "listen.tls.key")
			if err != nil {
				return err
			}
			policy, diags := daemon.NewPolicy(cfg, nil)
			if err := diags.Err(); err != nil {
				return err
			}
			call, err := c.readTrial(args[0])
			if err != nil {
				return err
			}
			sample, err := c.sample(cmd, call)
			if err != nil {
				return err
			}
			if err := unreadable(cfg, folders(sample.Definition.SourceName)...); err != nil {
				return err
			}
			verdict, err := policy.Try(sample)
			if err != nil {
				return err
			}
			if c.json {
				show = func(v *daemon.Verdict) error { return c.printJSON(v) }
			}
			if err := show(verdict); err != nil {
				return err
			}
			if call.Expect != "" && call.Expect != verdict.Action {
				return failure(fmt.Errorf("it comes out as %s and %s was expected", verdict.Action, call.Expect))
			}
			return nil
		}),
	}
}

// folders are the keys that say where a provider's relative paths begin, which the floor has to know.
func folders(provider string) []string {
	return []string{fmt.Sprintf("plugin %q.config.root", provider), serverBlock(provider) + ".cwd", serverBlock(provider) + ".command"}
}

// trial is a call in a file.
type trial struct {
	Agent     string          `json:"agent"`
	Tool      json.RawMessage `json:"tool"` // its name, or a definition
	Arguments json.RawMessage `json:"arguments"`
	Session   string          `json:"session"`
	Attended  *bool           `json:"attended"`
	Expect    pipeline.Action `json:"expect"`
}

func (c *cli) readTrial(path string) (*trial, error) {
	in := c.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	raw, err := readArguments(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var t trial
	if err := d.Decode(&t); err != nil {
		return nil, fmt.Errorf("%s: %w; see `hermesd policy test --help`", path, err)
	}
	if err := oneOf("expect", string(t.Expect), "allow", "ask", "deny"); err != nil {
		return nil, fmt.Errorf("%s: expect is %q; use allow, ask or deny", path, t.Expect)
	}
	if len(t.Tool) == 0 {
		return nil, fmt.Errorf("%s names no tool", path)
	}
	return &t, nil
}

// sample finds out what the tool of a trial is.
func (c *cli) sample(cmd *cobra.Command, t *trial) (*daemon.Sample, error) {
	s := &daemon.Sample{Arguments: t.Arguments, Agent: t.Agent, Session: t.Session, Definition: &tool.Definition{}}
	if t.Attended != nil {
		s.Attended = *t.Attended
	}
	var name string
	if json.Unmarshal(t.Tool, &name) != nil {
		if err := json.Unmarshal(t.Tool, s.Definition); err != nil {
			return nil, fmt.Errorf("the tool is neither a name nor a definition: %w", err)
		}
		if s.Definition.Name == "" {
			return nil, errors.New("the tool has no name")
		}
		return s, nil
	}
	return s, c.withDaemon(cmd.Context(), func(client *admin.Client) error {
		answer, err := client.GetDefinition(cmd.Context(), &adminpb.GetDefinitionRequest{Agent: t.Agent, Name: name})
		if err != nil {
			return err
		}
		s.Agent = answer.GetAgent()
		if t.Attended == nil {
			s.Attended = answer.GetAttended()
		}
		return json.Unmarshal(answer.GetDefinition(), s.Definition)
	})
}

func (c *cli) printVerdict(v *daemon.Verdict) error {
	sayf(c.out, "%s by %s\n", v.Action, v.Rule)
	if v.Reason != "" {
		sayf(c.out, "because: %s\n", v.Reason)
	}
	switch {
	case v.Floor:
		sayf(c.out, "no rule, grant or mode overrides that\n")
	case v.Action == pipeline.Ask:
		sayf(c.out, "a human may answer: %s, deny\n", strings.Join(v.Grants, ", "))
	}
	return nil
}

func (c *cli) printTraces(v *daemon.Verdict) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	sayf(w, "MATCHED\tACTION\tRULE\tAT\tPROBLEM\n")
	for _, t := range v.Rules {
		matched := "no"
		if t.Matched {
			matched = "yes"
		}
		sayf(w, "%s\t%s\t%s\t%s\t%s\n", matched, t.Action, t.Rule, t.Where, t.Problem)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	sayf(c.out, "\n")
	return c.printVerdict(v)
}
