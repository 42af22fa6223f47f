package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/daemon"
	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/mcpclient/oauth"
)

func (c *cli) mcpServerLoginCommand() *cobra.Command {
	var scopes []string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Log in to a remote server that wants OAuth; a running daemon notices by itself",
		Long: `Prints a link, waits until a person has agreed there and the browser has come back to
127.0.0.1, stores the tokens for you alone in the state directory, and tries them. If the
browser runs on another machine, forward the port that the link names (oauth { redirect_port }
keeps it the same). Where hermesd gets tokens by itself (oauth { grant }) it is only tried.`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			cfg, block, err := c.mcpServer(args[0])
			if err != nil {
				return err
			}
			if block.URL == "" {
				return fmt.Errorf("mcp_server %q is a command; only servers behind a url want a login", block.Name)
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), wait, fmt.Errorf("%v are over", wait))
			defer cancel()
			return c.login(ctx, cfg, block, scopes, wait)
		}),
	}
	cmd.Flags().StringArrayVar(&scopes, "scope", nil, "ask for this scope instead of those of the block or the server (may be repeated)")
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Minute, "how long to wait for the person")
	return cmd
}

// login connects with a person to ask.
func (c *cli) login(ctx context.Context, cfg *config.Config, block *config.MCPServer, scopes []string, wait time.Duration) (err error) {
	asked := false
	callback, err := oauth.Listen(block.OAuth.RedirectPort, func(link string) {
		asked = true
		sayf(c.err, "Open this link to log in to %s:\n\n  %s\n\n", block.Name, link)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, callback.Close()) }()
	opts, err := daemon.MCPServer(cfg, block, version)
	if err != nil {
		return err
	}
	opts.ConnectTimeout = wait
	if opts.OAuth, err = daemon.MCPServerAuthorizer(cfg, block, &daemon.Login{Show: callback.Fetch, RedirectURL: callback.RedirectURL(), Scopes: scopes}); err != nil {
		return err
	}
	if len(scopes) > 0 { // what is stored has other scopes
		if err := opts.OAuth.Forget(); err != nil {
			return err
		}
	}
	report, err := mcpclient.Probe(ctx, opts)
	if err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return fmt.Errorf("%s: %w", report.Steps[len(report.Steps)-1].Name, err)
	}
	switch {
	case !opts.OAuth.AsksPerson():
		sayf(c.out, "Nobody logs in to %s: hermesd gets its tokens by grant %q. It answers and has %d tools\n", block.Name, block.OAuth.Grant, len(report.Tools))
		return nil
	case !asked:
		sayf(c.out, "No login was needed: %s answers and has %d tools\n", block.Name, len(report.Tools))
		return nil
	}
	sayf(c.out, "Logged in to %s, which has %d tools\n", block.Name, len(report.Tools))
	return nil
}

func (c *cli) mcpServerLogoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout NAME",
		Short: "Forget the tokens of a server",
		Args:  cobra.ExactArgs(1),
		RunE: run(func(_ *cobra.Command, args []string) error {
			cfg, block, err := c.mcpServer(args[0])
			if err != nil {
				return err
			}
			authorizer, err := daemon.MCPServerAuthorizer(cfg, block, nil)
			if err != nil {
				return err
			}
			return authorizer.Forget()
		}),
	}
}
