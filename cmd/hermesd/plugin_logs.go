package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
)

// logLine is one line of `plugin logs --json`.
type logLine struct {
	Time   time.Time         `json:"time"`
	Level  string            `json:"level"`
	From   string            `json:"from"`
	Text   string            `json:"text"`
	Fields map[string]string `json:"fields,omitempty"`
	Missed uint64            `json:"missed,omitempty"`
}

func (c *cli) pluginLogsCommand() *cobra.Command {
	req := &adminpb.ProviderLogsRequest{}
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the last lines of a plugin or MCP server, and what hermesd said about it",
		Long: `Print the last lines of a plugin or MCP server, and what hermesd said about it.

Each line tells when, how serious, and where it came from: stdout and stderr of the process,
protocol (what it logged over its connection), or hermesd. The lines outlive the process; the
last 2,000 (512 KiB) are kept for as long as hermesd runs.`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			req.Name = args[0]
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				stream, err := client.ProviderLogs(cmd.Context(), req)
				if err != nil {
					return err
				}
				for {
					line, err := stream.Recv()
					if errors.Is(err, io.EOF) || err != nil && cmd.Context().Err() != nil {
						return nil
					}
					if err != nil {
						return err
					}
					if err := c.printLogLine(line); err != nil {
						return err
					}
				}
			})
		}),
	}
	cmd.Flags().BoolVarP(&req.Follow, "follow", "f", false, "go on with the lines to come, until interrupted")
	cmd.Flags().Int32VarP(&req.Lines, "lines", "n", 100, "the most lines to begin with")
	return cmd
}

func (c *cli) printLogLine(l *adminpb.LogLine) error {
	if c.json {
		line := logLine{Time: l.GetTime().AsTime(), Level: l.GetLevel(), From: l.GetFrom(), Text: l.GetText(), Missed: l.GetMissed()}
		for _, f := range l.GetFields() {
			if line.Fields == nil {
				line.Fields = map[string]string{}
			}
			line.Fields[f.GetKey()] = f.GetValue()
		}
		return json.NewEncoder(c.out).Encode(line)
	}
	if n := l.GetMissed(); n > 0 {
		sayf(c.err, "%d lines came faster than they could be printed\n", n)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-5s %-8s %s", l.GetTime().AsTime().Local().Format("2006-01-02 15:04:05.000"), strings.ToUpper(l.GetLevel()), l.GetFrom(), printable(l.GetText()))
	for _, f := range l.GetFields() {
		fmt.Fprintf(&b, " %s=%s", printable(f.GetKey()), quoteValue(f.GetValue()))
	}
	_, err := sayf(c.out, "%s\n", b.String())
	return err
}

func quoteValue(s string) string {
	if s == "" || strings.ContainsAny(s, " \"=") {
		return strconv.Quote(s)
	}
	return printable(s)
}

func (c *cli) pluginRestartCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restart NAME",
		Short: "Start a plugin or MCP server anew; this ends a quarantine",
		Long: `Start a plugin or MCP server anew, once its running calls are done. This ends a quarantine and
forgets earlier failures. Its tools stay listed meanwhile.`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				if _, err := client.RestartProvider(cmd.Context(), &adminpb.RestartProviderRequest{Name: args[0]}); err != nil {
					return err
				}
				_, err := sayf(c.out, "%s is started anew; see: hermesd plugin list\n", args[0])
				return err
			})
		}),
	}
}

func (c *cli) pluginRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME [DELEGATION...]",
		Short: "Take back what agents delegated to a plugin; without an id, all of it",
		Long: `Take back what agents delegated to a plugin. A delegation lets a plugin call one tool as one
agent outside that agent's calls; hermesd plugin inspect NAME lists them with their ids.
Without an id, all are taken back.`,
		Args: cobra.MinimumNArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				answer, err := client.RevokeDelegations(cmd.Context(), &adminpb.RevokeDelegationsRequest{Provider: args[0], Ids: args[1:]})
				if err != nil {
					return err
				}
				if answer.GetRevoked() == 0 && len(args) > 1 {
					return fmt.Errorf("%s holds no such delegation; see: hermesd plugin inspect %s", args[0], args[0])
				}
				_, err = sayf(c.out, "%d revoked\n", answer.GetRevoked())
				return err
			})
		}),
	}
}
