package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/daemon"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/mcpclient"
)

func (c *cli) mcpServerCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "mcp-server", Short: "MCP servers: list them, try one, log in to one"}
	cmd.AddCommand(c.mcpServerListCommand(), c.mcpServerTestCommand(), c.mcpServerLoginCommand(), c.mcpServerLogoutCommand())
	return cmd
}

// mcpServer finds a server's block. Its secrets may be missing, unless it is to be reached.
func (c *cli) mcpServer(name string) (*config.Config, *config.MCPServer, error) {
	cfg, err := c.load()
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for i := range cfg.MCPServers {
		if cfg.MCPServers[i].Name == name {
			return cfg, &cfg.MCPServers[i], nil
		}
		names = append(names, cfg.MCPServers[i].Name)
	}
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("the configuration has no mcp_server block; hermesd import makes some of other programs' files")
	}
	return nil, nil, fmt.Errorf("the configuration has no mcp_server %q; it has %s", name, strings.Join(names, ", "))
}

// serverBlock is a server's block as [config.Unread] names it.
func serverBlock(name string) string { return fmt.Sprintf("mcp_server %q", name) }

// reachable is a server's block with all that connecting to it takes.
func (c *cli) reachable(name string) (*config.Config, *config.MCPServer, error) {
	cfg, block, err := c.mcpServer(name)
	if err != nil {
		return nil, nil, err
	}
	if err := unreadable(cfg, serverBlock(name)); err != nil {
		return nil, nil, fmt.Errorf("%w. What a running daemon makes of the server: hermesd mcp-server list", err)
	}
	return cfg, block, nil
}

// serverStatus is one server of `mcp-server list --json`.
type serverStatus struct {
	Name    string `json:"name"`
	Target  string `json:"target"` // command or url
	Enabled bool   `json:"enabled"`
	Start   string `json:"start"`
	// State is what the running daemon says; "" if none runs.
	State  string `json:"state,omitempty"`
	Reason string `json:"reason,omitempty"`
	Tools  int32  `json:"tools"`
}

func (c *cli) mcpServerListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the configured MCP servers and what the running daemon says of them",
		Long: `Lists the mcp_server blocks, and for each what the running daemon says of it; - where none runs.
A target that only the daemon can read is shown as it is written. To try one: hermesd mcp-server test NAME.`,
		Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			live, err := c.liveProviders(cmd.Context())
			if err != nil {
				return err
			}
			list := []serverStatus{}
			for i := range cfg.MCPServers {
				b := &cfg.MCPServers[i]
				s := serverStatus{Name: b.Name, Target: b.URL, Enabled: b.Enabled, Start: b.Start}
				if len(b.Command) > 0 {
					s.Target = b.Command[0]
				}
				for _, u := range cfg.Unread {
					if u.Block == serverBlock(b.Name) && (u.Key == "url" || u.Key == "command") {
						s.Target = u.Source
					}
				}
				if p := live[b.Name]; p != nil {
					s.State, s.Reason, s.Tools = p.GetState(), reasonOf(p), p.GetTools()
				}
				s.Target = cfg.Mask(s.Target)
				list = append(list, s)
			}
			if c.json {
				return c.printJSON(list)
			}
			w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
			sayf(w, "NAME\tSTATE\tTOOLS\tSTART\tTARGET\tREASON\n")
			for _, s := range list {
				state := s.State
				switch {
				case !s.Enabled:
					state = "disabled"
				case state == "":
					state = "-"
				}
				sayf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", s.Name, state, s.Tools, s.Start, s.Target, s.Reason)
			}
			return w.Flush()
		}),
	}
}

// liveProviders are the running daemon's MCP servers by name; none if no daemon runs.
func (c *cli) liveProviders(ctx context.Context) (map[string]*adminpb.ProviderStatus, error) {
	live := map[string]*adminpb.ProviderStatus{}
	err := c.withDaemon(ctx, func(client *admin.Client) error {
		answer, err := client.ListProviders(ctx, &adminpb.ListProvidersRequest{})
		if err != nil {
			return err
		}
		for _, p := range answer.GetProviders() {
			if p.GetSource() == "mcp" {
				live[p.GetName()] = p
			}
		}
		return nil
	})
	var exit *exitError
	if errors.As(err, &exit) && exit.code == exitNoDaemon {
		return live, nil
	}
	return live, err
}

func (c *cli) mcpServerTestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "test NAME",
		Short: "Connect to a server beside the daemon, list what it has, and say what is wrong",
		Long: `Connects as the daemon would, from this process, and prints each step with the time that it took. The
exit code is 1 if one fails. The secrets of the server's own block must be there: if they are variables in
the EnvironmentFile= of the daemon's unit, first: set -a; . FILE; set +a. Those of other blocks need not.`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			cfg, block, err := c.reachable(args[0])
			if err != nil {
				return err
			}
			opts, err := daemon.MCPServer(cfg, block, version)
			if err != nil {
				return err
			}
			report, err := mcpclient.Probe(cmd.Context(), opts)
			if err != nil {
				return err
			}
			if failed := report.Err(); failed != nil && block.URL == "" && block.Isolation != "none" && closedFile.MatchString(failed.Error()) {
				sayf(c.err, "A file may be closed to it by its isolation: open it with allow_read or allow_write in its block.\n")
			}
			return c.printProbe(block.Name, report)
		}),
	}
}

// closedFile is how programs say that they may not open a file.
var closedFile = regexp.MustCompile(`(?i)\b(EACCES|EPERM|permission denied|operation not permitted)\b`)

// stepReport is one step of `mcp-server test --json`.
type stepReport struct {
	Name  string  `json:"name"`
	MS    float64 `json:"ms"`
	Error string  `json:"error,omitempty"`
}

func (c *cli) printProbe(name string, r *mcpclient.Report) error {
	failed := r.Err()
	if c.json {
		report := struct {
			Name      string            `json:"name"`
			OK        bool              `json:"ok"`
			Server    string            `json:"server,omitempty"`
			Version   string            `json:"version,omitempty"`
			Protocol  string            `json:"protocol,omitempty"`
			Steps     []stepReport      `json:"steps"`
			Tools     []string          `json:"tools"`
			Refused   map[string]string `json:"refused,omitempty"`
			Resources int               `json:"resources"`
			Templates int               `json:"resource_templates"`
			Prompts   int               `json:"prompts"`
		}{
			Name: name, OK: failed == nil, Server: r.ServerName, Version: r.ServerVersion, Protocol: r.Protocol, Tools: []string{},
			Refused: r.Refused, Resources: r.Resources, Templates: r.Templates, Prompts: r.Prompts,
		}
		for _, s := range r.Steps {
			step := stepReport{Name: s.Name, MS: float64(s.Took.Microseconds()) / 1000}
			if s.Err != nil {
				step.Error = s.Err.Error()
			}
			report.Steps = append(report.Steps, step)
		}
		for i := range r.Tools {
			report.Tools = append(report.Tools, r.Tools[i].Name)
		}
		if err := c.printJSON(report); err != nil {
			return err
		}
	} else if err := c.printSteps(r); err != nil {
		return err
	}
	if failed != nil {
		return &exitError{code: exitFailure, err: failed, silent: true}
	}
	return nil
}

func (c *cli) printSteps(r *mcpclient.Report) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, s := range r.Steps {
		said := ""
		switch {
		case s.Err != nil:
			said = "failed: " + s.Err.Error()
		case s.Name == "handshake":
			said = strings.TrimSpace(fmt.Sprintf("%s %s, protocol %s", r.ServerName, r.ServerVersion, r.Protocol))
		case s.Name == "tools/list":
			said = strings.TrimSuffix(fmt.Sprintf("%d tools; %s", len(r.Tools), r.Remark), "; ")
		case s.Name == "resources and prompts":
			said = fmt.Sprintf("%d resources, %d templates, %d prompts", r.Resources, r.Templates, r.Prompts)
		}
		sayf(w, "%s\t%s\t%s\n", s.Name, s.Took.Round(100*time.Microsecond), said)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i := range r.Tools {
		refused := ""
		if reason := r.Refused[r.Tools[i].Name]; reason != "" {
			refused = "  refused: " + reason
		}
		sayf(c.out, "  %s%s\n", r.Tools[i].Name, refused)
	}
	return nil
}
