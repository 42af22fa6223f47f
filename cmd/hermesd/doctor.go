package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
)

// finding is one line of doctor's report.
type finding struct {
	Check  string `json:"check"`
	Level  string `json:"level"` // ok, note or problem
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"` // what to do about it
}

// The levels of a finding.
const (
	fine    = "ok"
	note    = "note"
	problem = "problem"
)

func (c *cli) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and say what to do about it",
		Long:  "Checks the configuration, the state directory, the socket, the providers and the machine. It changes\nnothing. The exit code is 1 if there is a problem. Secrets that only the daemon can read are noted.",
		Args:  cobra.NoArgs,
		RunE:  run(func(cmd *cobra.Command, _ []string) error { return c.doctor(cmd.Context()) }),
	}
}

func (c *cli) doctor(ctx context.Context) error {
	findings, cfg := c.examineConfig()
	if cfg != nil {
		findings = append(findings, examineState(cfg)...)
		findings = append(findings, examinePrograms(cfg)...)
	}
	findings = append(findings, c.examineDaemon(ctx)...)
	findings = append(findings, finding{"pipeline", fine, "every call passes: " + strings.Join(pipeline.Stages(), ", "), ""})
	if err := c.printFindings(findings); err != nil {
		return err
	}
	for _, f := range findings {
		if f.Level == problem {
			return &exitError{code: exitFailure, err: errors.New("there are problems"), silent: true}
		}
	}
	return nil
}

func (c *cli) printFindings(findings []finding) error {
	if c.json {
		return c.printJSON(findings)
	}
	for _, f := range findings {
		sayf(c.out, "%-8s %-10s %s\n", f.Level, f.Check, f.Text)
		if f.Advice != "" {
			sayf(c.out, "%-8s %-10s → %s\n", "", "", f.Advice)
		}
	}
	return nil
}

func (c *cli) examineConfig() ([]finding, *config.Config) {
	path, named := c.path()
	if _, err := os.Stat(path); !named && errors.Is(err, os.ErrNotExist) {
		path += " (not there: defaults)"
	}
	cfg, diags := c.read(here())
	var list []finding
	for _, d := range diags.Items() {
		level := problem
		if d.Severity == "warning" {
			level = note
		}
		list = append(list, finding{"config", level, d.String(), "correct it and run: hermesd config check"})
	}
	if diags.HasErrors() {
		return list, nil
	}
	for i := range cfg.Unread {
		list = append(list, finding{"config", note, cfg.Unread[i].String(), bring})
	}
	list = append(list, finding{"config", fine, path, ""})
	if len(cfg.Rules) == 0 && cfg.DefaultAction == "allow" {
		list = append(list, finding{"rules", note, "no rules: every call that is valid runs without asking", "add rule blocks, as config.hcl.example shows, to be asked about destructive tools"})
	}
	return append(list, examineReach(cfg)...), cfg
}

// examineReach looks at who reaches the daemon, and by which name.
func examineReach(cfg *config.Config) []finding {
	var list []finding
	local := slices.ContainsFunc(cfg.Agents, func(a config.Agent) bool { return a.Name == config.LocalAgent })
	if len(cfg.Agents) > 0 && !local {
		list = append(list, finding{"agents", note,
			`beside the agents of the configuration, your own programs on this machine are the agent "local": without a token, with every tool`,
			`agent "local" { enabled = false }, or a block "local" that says what it may use; a system service has no such agent`})
	}
	if l := &cfg.Listen; cfg.Approvals.Webhook != "" && l.HTTP != "off" && l.Reach(l.HTTP) == "" {
		list = append(list, finding{"approvals", note,
			"the webhook gets no address at which a question can be answered: the daemon listens on all addresses, and no name of this machine is known",
			"set listen { public_url } to the address that people use"})
	}
	return list
}

func examineState(cfg *config.Config) []finding {
	info, err := os.Stat(cfg.StateDir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return []finding{{"state", note, cfg.StateDir + " is not there yet", "the daemon makes it when it starts"}}
	case err != nil:
		return []finding{{"state", problem, err.Error(), "give the daemon's user access, or set state_dir"}}
	case !info.IsDir():
		return []finding{{"state", problem, cfg.StateDir + " is no directory", "move it away, or set state_dir"}}
	}
	var list []finding
	if info.Mode().Perm()&0o077 != 0 {
		list = append(list, finding{"state", problem, fmt.Sprintf("%s can be read by others (%v)", cfg.StateDir, info.Mode().Perm()), "chmod 700 " + cfg.StateDir})
	}
	probe, err := os.CreateTemp(cfg.StateDir, ".doctor-")
	if err != nil {
		return append(list, finding{"state", problem, "it cannot be written: " + err.Error(), "give the daemon's user access, free the disk, or set state_dir"})
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return append(list, finding{"state", problem, err.Error(), "look at the file system"})
	}
	return append(list, finding{"state", fine, cfg.StateDir, ""}, freeSpace(cfg.StateDir))
}

// examinePrograms looks whether what the configuration starts is there.
func examinePrograms(cfg *config.Config) []finding {
	var list []finding
	look := func(kind, name, where, program string) {
		if _, err := exec.LookPath(program); err != nil {
			list = append(list, finding{"programs", problem, fmt.Sprintf("%s %q (%s): %v", kind, name, where, err), "install it, or correct the block"})
		}
	}
	unknown := func(kind, name string) bool { // what it starts
		return slices.ContainsFunc(cfg.Unread, func(u config.Unread) bool {
			return u.Block == fmt.Sprintf("%s %q", kind, name) && slices.Contains([]string{"path", "command", "exec", "enabled"}, u.Key)
		})
	}
	for i := range cfg.Plugins {
		if p := &cfg.Plugins[i]; p.Enabled && !unknown("plugin", p.Name) {
			argv, err := argvOf(cfg, p)
			if err != nil {
				list = append(list, finding{"programs", problem, fmt.Sprintf("plugin %q (%s): %v", p.Name, p.Pos, err), "install it, or give the block a path"})
				continue
			}
			look("plugin", p.Name, p.Pos.String(), argv[0])
		}
	}
	for i := range cfg.MCPServers {
		if m := &cfg.MCPServers[i]; m.Enabled && len(m.Command) > 0 && !unknown("mcp_server", m.Name) {
			look("mcp_server", m.Name, m.Pos.String(), m.Command[0])
		}
	}
	for i := range cfg.Hooks {
		if h := &cfg.Hooks[i]; h.Enabled && len(h.Exec) > 0 && !unknown("hook", h.Name) {
			look("hook", h.Name, h.Pos.String(), h.Exec[0])
		}
	}
	return list
}

func (c *cli) examineDaemon(ctx context.Context) []finding {
	client, err := c.dial(ctx)
	if err != nil {
		return []finding{{"daemon", note, err.Error(), ""}}
	}
	list, err := c.askDaemon(ctx, client)
	if err := errors.Join(err, client.Close()); err != nil {
		list = append(list, finding{"daemon", problem, err.Error(), "look at its log"})
	}
	return list
}

// manyEager is the number of tools in an agent's own list from which models begin to choose badly among them.
const manyEager = 10

func (c *cli) askDaemon(ctx context.Context, client *admin.Client) ([]finding, error) {
	status, err := client.Status(ctx, &adminpb.StatusRequest{})
	if err != nil {
		return nil, err
	}
	list := []finding{{"daemon", fine, fmt.Sprintf("version %s, pid %d, %d tools", status.GetVersion(), status.GetPid(), status.GetTools()), ""}}
	if why := status.GetBlocked(); why != "" {
		list = append(list, finding{"calls", problem, why, "free the disk and give the daemon's user access to the state directory; it goes on by itself within a second, and if it does not, restart it"})
	}
	if status.GetVersion() != version {
		list = append(list, finding{"daemon", note, fmt.Sprintf("this command is version %s, the daemon %s", version, status.GetVersion()), "restart the daemon after an upgrade"})
	}
	for _, x := range status.GetCollisions() {
		list = append(list, finding{"names", problem, x.GetName() + ": " + x.GetText(), ""})
	}
	for _, a := range status.GetAgents() {
		if a.GetTier() > 0 && a.GetEager() > manyEager {
			list = append(list, finding{"agents", note, fmt.Sprintf("agent %q has %d tools in its own list", a.GetName(), a.GetEager()), "defer some: tools { tool_search { defer } }"})
		}
	}
	warnings, err := client.GetWarnings(ctx, &adminpb.GetWarningsRequest{})
	if err != nil {
		return list, err
	}
	for _, w := range warnings.GetWarnings() {
		list = append(list, finding{"config", note, w, "correct the name, or start its provider"})
	}
	providers, err := client.ListProviders(ctx, &adminpb.ListProvidersRequest{})
	if err != nil {
		return list, err
	}
	for _, p := range providers.GetProviders() {
		list = append(list, examineProvider(p)...)
	}
	return list, nil
}

func examineProvider(p *adminpb.ProviderStatus) []finding {
	name := filepath.Join(p.GetSource(), p.GetName())
	level := fine
	if p.GetReason() != "" && p.GetState() != string(provider.Disabled) && p.GetState() != string(provider.Draining) {
		level = problem
	}
	text := fmt.Sprintf("%s is %s, %d tools", name, p.GetState(), p.GetTools())
	switch {
	case p.GetReason() != "":
		text += ": " + p.GetReason()
	case p.GetState() == string(provider.Installed):
		text += " from its last run; a program or a tool that has changed since is noticed when the first call starts it"
	}
	list := []finding{{"providers", level, text, ""}}
	for tool, reason := range p.GetUnmet() {
		list = append(list, finding{"tools", note, tool + " is not offered: " + reason, ""})
	}
	for tool, reason := range p.GetRefused() {
		list = append(list, finding{"tools", problem, tool + " is refused: " + reason, ""})
	}
	return list
}
