package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/hooks/approval"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
)

func (c *cli) approvalsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "approvals", Short: "Answer what agents need a human for",
		Long: "Lists and answers the calls that a rule or a hook holds back until a human has approved them. Answering needs\n" +
			"to be the daemon's own user, root, or a member of the group in approvals { group }. Programs that the daemon\n" +
			"started, tools above all, are refused.",
	}
	cmd.AddCommand(c.approvalsListCommand(), c.approvalsWatchCommand(), c.approvalsApproveCommand(), c.approvalsDenyCommand(),
		c.approvalsGrantsCommand(), c.approvalsRevokeCommand())
	return cmd
}

func (c *cli) approvalsListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the calls that wait for an answer", Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				answer, err := client.ListApprovals(cmd.Context(), &adminpb.ListApprovalsRequest{})
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(rawList(answer.GetPending()))
				}
				if len(answer.GetPending()) == 0 {
					sayf(c.out, "Nothing waits for an answer.\n")
				}
				for _, raw := range answer.GetPending() {
					if err := c.printPending(raw); err != nil {
						return err
					}
				}
				return nil
			})
		}),
	}
}

// rawList is a list of values that are JSON already.
func rawList(list [][]byte) []json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}

func (c *cli) printPending(raw []byte) error {
	var p approval.Pending
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("the daemon's answer: %w", err)
	}
	left := time.Until(p.Expires).Round(time.Second)
	switch {
	case p.Lost:
		sayf(c.out, "%s  can no more be answered: the daemon was started anew\n", p.ID)
	default:
		sayf(c.out, "%s  %s left, session %s\n", p.ID, left, p.Session)
	}
	sayf(c.out, "    %s\n", indented(p.Text(), "    "))
	if !p.Lost {
		sayf(c.out, "    Answer: hermesd approvals approve %s%s, or hermesd approvals deny %s --reason \"…\"\n", p.ID, forChoices(p.Choices), p.ID)
	}
	return nil
}

func forChoices(choices []approval.Choice) string {
	var flags []string
	for _, choice := range choices {
		if choice == approval.Session || choice == approval.Always {
			flags = append(flags, "--"+string(choice))
		}
	}
	if len(flags) == 0 {
		return ""
	}
	return " [" + strings.Join(flags, "|") + "]"
}

func (c *cli) approvalsWatchCommand() *cobra.Command {
	return &cobra.Command{
		Use: "watch", Short: "Show calls that need an answer as they come",
		Long: "Shows what waits for an answer, and every change after that, until it is interrupted. While somebody watches,\n" +
			"agents' questions count as heard. Answer in another terminal.",
		Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				stream, err := client.WatchApprovals(cmd.Context(), &adminpb.WatchApprovalsRequest{})
				if err != nil {
					return err
				}
				for {
					event, err := stream.Recv()
					if cmd.Context().Err() != nil {
						return nil
					}
					if err != nil {
						return err
					}
					if err := c.printApprovalEvent(event.GetEvent()); err != nil {
						return err
					}
				}
			})
		}),
	}
}

func (c *cli) printApprovalEvent(raw []byte) error {
	if c.json {
		return c.printLines([][]byte{raw})
	}
	var e struct {
		Opened json.RawMessage  `json:"opened"`
		Closed *approval.Closed `json:"closed"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("the daemon's answer: %w", err)
	}
	if e.Closed == nil {
		return c.printPending(e.Opened)
	}
	how := string(e.Closed.Code)
	if how == "" {
		how = "approved, " + string(e.Closed.Decision.Choice)
	}
	if by := e.Closed.Decision.By; by != "" {
		how += ", by " + by
	}
	_, err := sayf(c.out, "%s  %s: %s\n", e.Closed.Request.ID, e.Closed.Request.Tool, how)
	return err
}

func (c *cli) approvalsApproveCommand() *cobra.Command {
	var session, always bool
	var pattern map[string]string
	cmd := &cobra.Command{
		Use: "approve ID", Short: "Let a call run",
		Long: "Approves one call, once. --session also lets later calls of the tool in this session run that the same rule asks\n" +
			"about, --always those whose arguments fit the pattern that `approvals list` shows; --pattern widens it, with * for\n" +
			"any text. Both are grants: `approvals grants` lists them, `approvals revoke` ends them.",
		Example: "  hermesd approvals approve k3v9p2\n  hermesd approvals approve k3v9p2 --always --pattern 'command=\"git *\"' --pattern '*=*'",
		Args:    cobra.ExactArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			choice := approval.Once
			switch {
			case session:
				choice = approval.Session
			case always:
				choice = approval.Always
			case pattern != nil:
				return &exitError{code: exitUsage, err: errors.New("--pattern needs --always")}
			}
			return c.answer(cmd.Context(), &adminpb.AnswerApprovalRequest{Id: args[0], Choice: string(choice), Pattern: pattern})
		}),
	}
	cmd.Flags().BoolVar(&session, "session", false, "and later ones in this session")
	cmd.Flags().BoolVar(&always, "always", false, "and later ones with such arguments")
	cmd.Flags().StringToStringVar(&pattern, "pattern", nil, "with --always: ARGUMENT=PATTERN, of the argument's JSON")
	cmd.MarkFlagsMutuallyExclusive("session", "always")
	return cmd
}

func (c *cli) approvalsDenyCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "deny ID", Short: "Refuse a call", Example: `  hermesd approvals deny k3v9p2 --reason "use the staging system"`, Args: cobra.ExactArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			return c.answer(cmd.Context(), &adminpb.AnswerApprovalRequest{Id: args[0], Choice: string(approval.Deny), Reason: reason})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "what the agent reads")
	return cmd
}

func (c *cli) answer(ctx context.Context, req *adminpb.AnswerApprovalRequest) error {
	return c.withDaemon(ctx, func(client *admin.Client) error {
		if _, err := client.AnswerApproval(ctx, req); err != nil {
			return err
		}
		if c.json {
			return c.printJSON(map[string]string{"id": req.GetId(), "choice": req.GetChoice()})
		}
		_, err := sayf(c.out, "%s: %s\n", req.GetId(), req.GetChoice())
		return err
	})
}

func (c *cli) approvalsGrantsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "grants", Short: "List approvals that cover later calls", Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				answer, err := client.ListGrants(cmd.Context(), &adminpb.ListGrantsRequest{})
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(rawList(answer.GetGrants()))
				}
				return c.printGrants(answer.GetGrants())
			})
		}),
	}
}

func (c *cli) printGrants(list [][]byte) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	sayf(w, "ID\tKIND\tAGENT\tTOOL\tRULE\tARGUMENTS\tBY\tSINCE\n")
	for _, raw := range list {
		var g approval.Grant
		if err := json.Unmarshal(raw, &g); err != nil {
			return fmt.Errorf("the daemon's answer: %w", err)
		}
		arguments := "any, in session " + g.Session
		if g.Kind == approval.Always {
			arguments = g.Pattern.String()
		}
		sayf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", g.ID, g.Kind, g.Agent, g.Tool, g.Key, arguments, g.By, g.Created.Local().Format(time.DateTime))
	}
	return w.Flush()
}

func (c *cli) approvalsRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID…", Short: "End grants", Args: cobra.MinimumNArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				for _, id := range args {
					if _, err := client.RevokeGrant(cmd.Context(), &adminpb.RevokeGrantRequest{Id: id}); err != nil {
						return err
					}
				}
				if c.json {
					return c.printJSON(map[string][]string{"revoked": args})
				}
				_, err := sayf(c.out, "revoked: %s\n", strings.Join(args, ", "))
				return err
			})
		}),
	}
}

// ended makes the end of a stream no error.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// oneOf is an error of usage for a flag that takes some words only.
func oneOf(flag, value string, words ...string) error {
	if value == "" || slices.Contains(words, value) {
		return nil
	}
	return &exitError{code: exitUsage, err: fmt.Errorf("--%s is %q; use one of: %s", flag, value, strings.Join(words, ", "))}
}
