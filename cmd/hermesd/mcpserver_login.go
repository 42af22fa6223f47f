package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
keeps it the same). Where hermesd gets tokens by itself (oauth { grant }) it is only tried.
Run it as the daemon's user, and with the secrets of the server's own block.`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			cfg, block, err := c.reachable(args[0])
			if err != nil {
				return err
			}
			if len(block.Command) > 0 {
				return noLogin(block)
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
		err = fmt.Errorf("%s: %w", report.Steps[len(report.Steps)-1].Name, err)
		if sendsOwn(block.Headers) {
			err = fmt.Errorf("%w\nThe headers of mcp_server %q have an Authorization, which goes with every request in place of a login's token: correct it, or remove it to log in", err, block.Name)
		}
		return err
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

// sendsOwn reports whether the operator's own Authorization goes with every request.
func sendsOwn(headers map[string]string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(headers)), func(name string) bool { return strings.EqualFold(name, "Authorization") })
}

func (c *cli) mcpServerLogoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout NAME",
		Short: "Forget the tokens of a server",
		Long: `Deletes the tokens that a login stored in the state directory; a running daemon notices by itself. The
server may go on taking them until they end: revoke them there, too, if somebody else may have them.`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(_ *cobra.Command, args []string) error {
			cfg, block, err := c.mcpServer(args[0])
			if err != nil {
				return err
			}
			if len(block.Command) > 0 {
				return noLogin(block)
			}
			// Tokens are stored by the block's name. What else it says, and whether that can be read here, is of no matter.
			authorizer, err := daemon.MCPServerAuthorizer(cfg, &config.MCPServer{Name: block.Name, URL: "https://" + block.Name}, nil)
			if err != nil {
				return err
			}
			if err := authorizer.Forget(); err != nil {
				return err
			}
			_, err = sayf(c.out, "No token of %s is stored here any more\n", block.Name)
			return err
		}),
	}
}

// noLogin is the error for a server that is started.
func noLogin(block *config.MCPServer) error {
	return fmt.Errorf("mcp_server %q is a command and has no login; only servers behind a url have one. What it needs goes into its env", block.Name)
}
