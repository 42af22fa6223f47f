package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/provider"
)

func (c *cli) pluginCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "plugin", Short: "Plugins and other providers: their state, and why a tool cannot be had"}
	cmd.AddCommand(c.pluginListCommand(), c.pluginInspectCommand(), c.pluginLogsCommand(), c.pluginRestartCommand(), c.pluginRevokeCommand())
	cmd.AddCommand(c.pluginInstallCommand(), c.pluginPinCommand(), c.pluginRollbackCommand(), c.pluginVerifyCommand(), c.pluginLockCommand())
	cmd.AddCommand(c.pluginNewCommand(), c.pluginCheckCommand(), c.pluginDevCommand(), c.pluginDocsCommand())
	return cmd
}

// providerStatus is one provider of `plugin list --json`.
type providerStatus struct {
	Name        string            `json:"name"`
	Source      string            `json:"source"`
	State       string            `json:"state"`
	Reason      string            `json:"reason,omitempty"`
	Since       time.Time         `json:"since"`
	Healthy     bool              `json:"healthy"`
	LastSuccess *time.Time        `json:"last_success,omitempty"`
	LastFailure *time.Time        `json:"last_failure,omitempty"`
	Failure     string            `json:"failure,omitempty"`
	Restarts    int32             `json:"restarts"`
	PID         int32             `json:"pid,omitempty"`
	Tools       int32             `json:"tools"`
	Unmet       map[string]string `json:"unmet,omitempty"`
	Refused     map[string]string `json:"refused,omitempty"`
}

func statusOf(p *adminpb.ProviderStatus) providerStatus {
	return providerStatus{
		Name: p.GetName(), Source: p.GetSource(), State: p.GetState(), Reason: p.GetReason(), Since: p.GetSince().AsTime(),
		Restarts: p.GetRestarts(), PID: p.GetPid(), Tools: p.GetTools(), Unmet: p.GetUnmet(), Refused: p.GetRefused(),
		Healthy: p.GetHealthy(), Failure: p.GetFailure(), LastSuccess: moment(p.GetLastSuccess()), LastFailure: moment(p.GetLastFailure()),
	}
}

func moment(at *timestamppb.Timestamp) *time.Time {
	if at == nil {
		return nil
	}
	t := at.AsTime()
	return &t
}

func (c *cli) pluginListCommand() *cobra.Command {
	var installed bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List plugins, MCP servers and their states",
		Args:  cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if installed {
				return c.listInstalled()
			}
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				answer, err := client.ListProviders(cmd.Context(), &adminpb.ListProvidersRequest{})
				if err != nil {
					return err
				}
				return c.printProviders(answer.GetProviders())
			})
		}),
	}
	cmd.Flags().BoolVar(&installed, "installed", false, "list what the plugin store holds, without asking the daemon")
	return cmd
}

func (c *cli) printProviders(providers []*adminpb.ProviderStatus) error {
	if c.json {
		list := make([]providerStatus, len(providers))
		for i, p := range providers {
			list[i] = statusOf(p)
		}
		return c.printJSON(list)
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	sayf(w, "NAME\tKIND\tSTATE\tSINCE\tWORKED\tRESTARTS\tTOOLS\tPID\tREASON\n")
	for _, p := range providers {
		pid := ""
		if p.GetPid() != 0 {
			pid = strconv.Itoa(int(p.GetPid()))
		}
		reason, worked := reasonOf(p), "never"
		if p.GetLastSuccess() != nil {
			worked = ago(p.GetLastSuccess()) + " ago"
		}
		sayf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n",
			p.GetName(), p.GetSource(), p.GetState(), ago(p.GetSince()), worked, p.GetRestarts(), p.GetTools(), pid, reason)
	}
	return w.Flush()
}

// reasonOf is what is wrong with a provider, in one line; "" if nothing is.
func reasonOf(p *adminpb.ProviderStatus) string {
	if p.GetState() == string(provider.Ready) && !p.GetHealthy() && p.GetFailure() != "" {
		return "its last exchange failed: " + p.GetFailure()
	}
	if p.GetReason() != "" {
		return p.GetReason()
	}
	missing := maps.Clone(p.GetUnmet())
	if missing == nil {
		missing = map[string]string{}
	}
	maps.Copy(missing, p.GetRefused())
	if len(missing) == 0 {
		return ""
	}
	name := slices.Min(slices.Collect(maps.Keys(missing)))
	if len(missing) == 1 {
		return fmt.Sprintf("%s is not offered: %s", name, missing[name])
	}
	return fmt.Sprintf("%d tools are not offered, %s among them; see: hermesd plugin inspect %s", len(missing), name, p.GetName())
}

func ago(at *timestamppb.Timestamp) string {
	if at == nil {
		return ""
	}
	return time.Since(at.AsTime()).Round(time.Second).String()
}

func (c *cli) pluginInspectCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect NAME",
		Short: "Print everything that is known about one provider, as JSON",
		Args:  cobra.ExactArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				answer, err := client.InspectProvider(cmd.Context(), &adminpb.InspectProviderRequest{Name: args[0]})
				if err != nil {
					return err
				}
				tools := make([]string, len(answer.GetTools()))
				for i, t := range answer.GetTools() {
					tools[i] = t.GetName()
				}
				return c.printJSON(struct {
					Status providerStatus  `json:"status"`
					Detail json.RawMessage `json:"detail,omitempty"`
					Tools  []string        `json:"tools"`
				}{statusOf(answer.GetStatus()), answer.GetDetail(), tools})
			})
		}),
	}
}
