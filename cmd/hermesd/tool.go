package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
)

func (c *cli) toolCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "tool", Short: "List, search, describe and call tools as an agent would"}
	var agent string
	cmd.PersistentFlags().StringVar(&agent, "agent", "", "whose view of the tools to take (default: the local agent)")
	cmd.AddCommand(c.toolListCommand(&agent), c.toolSearchCommand(&agent), c.toolDescribeCommand(&agent), c.toolCallCommand(&agent), c.toolRankCommand(), c.toolForgetCommand(&agent))
	return cmd
}

// withDaemon runs f with a connection to the daemon.
func (c *cli) withDaemon(ctx context.Context, f func(*admin.Client) error) error {
	client, err := c.dial(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(client), client.Close())
}

func (c *cli) toolListCommand(agent *string) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tools that are granted to an agent",
		Long:  "Lists the tools that an agent can use: those in its own list, and with --all those that it reaches\nthrough the bridge. Tools that cannot be had right now stand there with the reason.",
		Args:  cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				answer, err := client.ListTools(cmd.Context(), &adminpb.ListToolsRequest{Agent: *agent})
				if err != nil {
					return err
				}
				return c.printTools(answer, all)
			})
		}),
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "deferred tools too")
	return cmd
}

// listed is one tool of `tool list --json`.
type listed struct {
	Name        string `json:"name"`
	Source      string `json:"source"`
	SourceName  string `json:"source_name"`
	Toolset     string `json:"toolset,omitempty"`
	Coldness    string `json:"coldness"`
	Description string `json:"description"`
	Deferred    bool   `json:"deferred"`
	Condition   string `json:"condition"`
	Reason      string `json:"reason,omitempty"`
	Tokens      int32  `json:"tokens"`
}

func (c *cli) printTools(answer *adminpb.ListToolsResponse, all bool) error {
	list := []listed{}
	deferred := 0
	for _, t := range answer.GetTools() {
		if t.GetDeferred() {
			deferred++
		}
		if all || !t.GetDeferred() {
			list = append(list, listed{
				t.GetName(), t.GetSource(), t.GetSourceName(), t.GetToolset(), t.GetColdness(), t.GetDescription(),
				t.GetDeferred(), t.GetCondition(), t.GetReason(), t.GetTokens(),
			})
		}
	}
	if c.json {
		return c.printJSON(list)
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	sayf(w, "NAME\tSOURCE\tSTATE\tDESCRIPTION\n")
	for _, t := range list {
		state := t.Condition
		if t.Deferred {
			state += ", deferred"
		}
		text := t.Description
		if t.Reason != "" {
			text = t.Reason
		}
		sayf(w, "%s\t%s\t%s\t%s\n", t.Name, t.SourceName, state, firstLine(text))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if deferred > 0 && !all {
		sayf(c.out, "\nand the bridge to %d deferred tools; --all lists them\n", deferred)
	}
	return nil
}

// lineWidth bounds a cell of a table, in characters.
const lineWidth = 70

func firstLine(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > lineWidth {
		return strings.TrimSpace(string(runes[:lineWidth-1])) + "…"
	}
	if more {
		return line + " …"
	}
	return line
}

func (c *cli) toolDescribeCommand(agent *string) *cobra.Command {
	return &cobra.Command{
		Use:   "describe NAME…",
		Short: "Print the full description and schema of tools",
		Args:  cobra.MinimumNArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				answer, err := client.Describe(cmd.Context(), &adminpb.DescribeRequest{Agent: *agent, Names: args})
				if err != nil {
					return err
				}
				return c.printJSON(json.RawMessage(answer.GetResult()))
			})
		}),
	}
}

func (c *cli) toolCallCommand(agent *string) *cobra.Command {
	var session string
	var explain bool
	cmd := &cobra.Command{
		Use:   "call NAME [ARGUMENTS]",
		Short: "Call a tool; its arguments are a JSON object, - reads it from standard input",
		Long:  "Calls a tool through the same pipeline as any agent's call. Progress and log lines go to standard\nerror, the result to standard output. The exit code is 4 if the tool answered with an error.",
		Args:  cobra.RangeArgs(1, 2),
		Example: `  hermesd tool call greet '{"name": "Ada"}'
  echo '{"path": "README.md"}' | hermesd tool call files_read -`,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			arguments, err := c.arguments(args[1:])
			if err != nil {
				return err
			}
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				if explain {
					return c.explainCall(cmd.Context(), client, &adminpb.ExplainCallRequest{Agent: *agent, Name: args[0], Arguments: arguments, Session: session})
				}
				stream, err := client.Call(cmd.Context(), &adminpb.CallRequest{Agent: *agent, Name: args[0], Arguments: arguments, Session: session})
				if err != nil {
					return err
				}
				return c.printCall(stream)
			})
		}),
	}
	cmd.Flags().StringVar(&session, "session", "", "the session that the call belongs to")
	cmd.Flags().BoolVar(&explain, "explain", false, "also say what each stage did: what was coerced, which rule decided, how long it took")
	return cmd
}

// maxArguments bounds what is read from standard input.
const maxArguments = 16 << 20

// readArguments reads all that there is, or none of it.
func readArguments(in io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(in, maxArguments+1))
	if err == nil && len(raw) > maxArguments {
		err = fmt.Errorf("it has more than %d MiB, which no call may", maxArguments>>20)
	}
	return raw, err
}

func (c *cli) arguments(args []string) ([]byte, error) {
	if len(args) == 0 {
		return nil, nil
	}
	raw := []byte(args[0])
	if args[0] == "-" {
		var err error
		if raw, err = readArguments(c.in); err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("the arguments are no JSON object (%w); write them like '{\"name\": \"value\"}'", err)}
	}
	return raw, nil
}

// events is what a call sends while it runs.
type events interface {
	Recv() (*adminpb.CallEvent, error)
}

func (c *cli) printCall(stream events) error {
	for {
		event, err := stream.Recv()
		switch {
		case errors.Is(err, admin.ErrRefused):
			return fmt.Errorf("the call did not run: %w", err)
		case err != nil:
			return fmt.Errorf("the call's answer was cut off, so it may or may not have run: %w", err)
		}
		switch {
		case event.GetProgress() != nil:
			p := event.GetProgress()
			of := ""
			if p.GetTotal() > 0 {
				of = fmt.Sprintf("/%g", p.GetTotal())
			}
			sayf(c.err, "%g%s %s\n", p.GetDone(), of, p.GetNote())
		case event.GetLog() != nil:
			sayf(c.err, "%s: %s\n", event.GetLog().GetLevel(), event.GetLog().GetData())
		case event.GetResult() != nil:
			return c.printResult(event.GetResult())
		}
	}
}

func (c *cli) printResult(r *adminpb.Result) error {
	failed := func() error {
		if !r.GetIsError() {
			return nil
		}
		return &exitError{code: exitTool, err: errors.New("the tool answered with an error"), silent: true}
	}
	if c.json {
		return errors.Join(c.printJSON(json.RawMessage(r.GetResult())), failed())
	}
	var result struct {
		Content []struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			MIMEType string `json:"mimeType"`
			Data     []byte `json:"data"`
			URI      string `json:"uri"`
		} `json:"content"`
	}
	if err := json.Unmarshal(r.GetResult(), &result); err != nil {
		return fmt.Errorf("the daemon's answer: %w", err)
	}
	for _, block := range result.Content {
		switch block.Type {
		case "text":
			if err := c.printText(block.Text); err != nil {
				return err
			}
		case "image", "audio":
			sayf(c.out, "[%s, %s, %d bytes; --json prints it]\n", block.Type, block.MIMEType, len(block.Data))
		default:
			sayf(c.out, "[%s %s; --json prints it]\n", block.Type, block.URI)
		}
	}
	return failed()
}
