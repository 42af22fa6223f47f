package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/tool"
)

func (c *cli) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Read and check the record of every call",
		Long: "Every call has a record before it runs and one of how it ended, chained by hashes. A call that was refused has\n" +
			"only the latter. The database may also be read by the daemon's user alone, with SQLite.",
	}
	cmd.AddCommand(c.auditTailCommand(), c.auditQueryCommand(), c.auditVerifyCommand(), c.auditExportCommand())
	return cmd
}

// auditFlags are the flags by which records are chosen.
type auditFlags struct {
	agent, tool, outcome, kind, call, since, until string
	after                                          int64
}

func (f *auditFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.agent, "agent", "", "of this agent")
	flags.StringVar(&f.tool, "tool", "", "of this tool, by its full name")
	flags.StringVar(&f.outcome, "outcome", "", "ok, error, denied, blocked, timeout, cancelled or outcome_unknown")
	flags.StringVar(&f.kind, "kind", "", "started, finished, asked, answered or refused")
	flags.StringVar(&f.call, "call", "", "of the call with this id")
}

func (f *auditFlags) times(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.since, "since", "", "from this time on: RFC 3339, a date, or a duration back from now such as 2h")
	cmd.Flags().StringVar(&f.until, "until", "", "before this time, written alike")
}

func (f *auditFlags) filter() (*adminpb.AuditFilter, error) {
	outcomes := []string{string(tool.OutcomeOK), string(tool.OutcomeError), string(tool.OutcomeDenied), string(tool.OutcomeBlocked), string(tool.OutcomeTimeout), string(tool.OutcomeCancelled), string(tool.OutcomeLost)}
	kinds := []string{string(tool.RecordStarted), string(tool.RecordFinished), string(tool.RecordAsked), string(tool.RecordAnswered), string(tool.RecordRefused)}
	if err := errors.Join(oneOf("outcome", f.outcome, outcomes...), oneOf("kind", f.kind, kinds...)); err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	out := &adminpb.AuditFilter{Agent: f.agent, Tool: f.tool, Outcome: f.outcome, Kind: f.kind, CallId: f.call, After: f.after}
	for _, t := range []struct {
		flag, text string
		to         **timestamppb.Timestamp
	}{{"since", f.since, &out.Since}, {"until", f.until, &out.Until}} {
		if t.text == "" {
			continue
		}
		at, err := parseTime(t.text, time.Now())
		if err != nil {
			return nil, &exitError{code: exitUsage, err: fmt.Errorf("--%s: %w", t.flag, err)}
		}
		*t.to = timestamppb.New(at)
	}
	return out, nil
}

func parseTime(text string, now time.Time) (time.Time, error) {
	if back, err := time.ParseDuration(text); err == nil {
		return now.Add(-back.Abs()), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time; write 2026-07-28T12:00:00Z, 2026-07-28 or 2h", text)
}

func (c *cli) auditQueryCommand() *cobra.Command {
	var f auditFlags
	var limit int32
	cmd := &cobra.Command{
		Use: "query", Short: "Show records, the newest first", Args: cobra.NoArgs,
		Example: "  hermesd audit query --agent desk --outcome denied --since 24h",
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			filter.Limit = limit
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				page, err := client.QueryAudit(cmd.Context(), filter)
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(rawList(page.GetEntries()))
				}
				return c.printEntries(page.GetEntries(), true)
			})
		}),
	}
	f.register(cmd)
	f.times(cmd)
	cmd.Flags().Int64Var(&f.after, "after", 0, "what follows the record of this number, oldest first")
	cmd.Flags().Int32Var(&limit, "limit", 50, "at most so many")
	return cmd
}

func (c *cli) auditTailCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use: "tail", Short: "Show records as they are written", Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				stream, err := client.TailAudit(cmd.Context(), filter)
				if err != nil {
					return err
				}
				for heading := true; ; heading = false {
					page, err := stream.Recv()
					if cmd.Context().Err() != nil {
						return nil
					}
					if err != nil {
						return ended(err)
					}
					if c.json {
						err = c.printLines(page.GetEntries())
					} else {
						err = c.printEntries(page.GetEntries(), heading)
					}
					if err != nil {
						return err
					}
				}
			})
		}),
	}
	f.register(cmd)
	cmd.Flags().Int64Var(&f.after, "after", 0, "begin after the record of this number; 0 begins with the next one")
	return cmd
}

func (c *cli) auditExportCommand() *cobra.Command {
	var f auditFlags
	var lines bool
	cmd := &cobra.Command{
		Use: "export", Short: "Print all records, the oldest first, one JSON object a line", Args: cobra.NoArgs,
		Example: "  hermesd audit export --jsonl --since 2026-07-01 > july.jsonl",
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				stream, err := client.ExportAudit(cmd.Context(), filter)
				if err != nil {
					return err
				}
				for {
					page, err := stream.Recv()
					if err != nil {
						return ended(err)
					}
					if err := c.printLines(page.GetEntries()); err != nil {
						return err
					}
				}
			})
		}),
	}
	f.register(cmd)
	f.times(cmd)
	cmd.Flags().BoolVar(&lines, "jsonl", true, "one JSON object a line, the only form there is")
	return cmd
}

func (c *cli) auditVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Hold every record against the chain of hashes",
		Long: "Finds the first record that was changed, removed or moved. The exit code is 1 if there is one. A chain alone does\n" +
			"not show that its end was cut off: keep the head that is printed here, or in the daemon's log, somewhere else.",
		Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				stream, err := client.VerifyAudit(cmd.Context(), &adminpb.VerifyAuditRequest{})
				if err != nil {
					return err
				}
				answer, err := stream.Recv()
				if err != nil {
					return err
				}
				return c.printReport(answer)
			})
		}),
	}
}

func (c *cli) printReport(answer *adminpb.VerifyAuditResponse) error {
	var r audit.Report
	if err := json.Unmarshal(answer.GetReport(), &r); err != nil {
		return fmt.Errorf("the daemon's answer: %w", err)
	}
	if c.json {
		if err := c.printJSON(json.RawMessage(answer.GetReport())); err != nil {
			return err
		}
	} else {
		head, err := r.Head.Hash.MarshalText()
		if err != nil {
			return err
		}
		sayf(c.out, "%d records, from %d to %d\nhead %d %s\n", r.Records, r.First, r.Head.Seq, r.Head.Seq, head)
		if r.Checkpoint != nil {
			sayf(c.out, "records up to %d were pruned at %s, signed\n", r.Checkpoint.Seq, r.Checkpoint.Time.Local().Format(time.DateTime))
		}
		if r.Fault != nil {
			sayf(c.out, "record %d %s\n", r.Fault.Seq, r.Fault.Reason)
		} else {
			sayf(c.out, "the chain is sound\n")
		}
	}
	if !answer.GetSound() {
		return &exitError{code: exitFailure, err: errors.New("the audit is not sound"), silent: true}
	}
	return nil
}

func (c *cli) printEntries(entries [][]byte, heading bool) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	if heading {
		sayf(w, "SEQ\tTIME\tKIND\tAGENT\tTOOL\tOUTCOME\tTOOK\tRULE\tBY\tCALL\n")
	}
	for _, raw := range entries {
		var e audit.Entry
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("the daemon's answer: %w", err)
		}
		outcome := string(e.Outcome)
		if e.Code != "" {
			outcome += " (" + string(e.Code) + ")"
		}
		took := ""
		if e.Duration > 0 {
			took = e.Duration.Round(time.Microsecond).String()
		}
		sayf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Seq, e.Time.Local().Format(time.DateTime), e.Kind, e.Agent, e.Tool, outcome, took, e.Rule, e.By, e.CallID)
	}
	return w.Flush()
}
