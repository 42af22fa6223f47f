package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
)

// The exit codes. They are part of the command line's contract and stand in `hermesd help`.
const (
	exitOK       = 0
	exitFailure  = 1 // what was asked for did not work
	exitUsage    = 2 // the command line itself is wrong
	exitNoDaemon = 3 // no daemon answers on the socket
	exitTool     = 4 // the tool was called and answered with an error
)

// exitError carries an exit code; its text, if any, has been printed already when silent is set.
type exitError struct {
	code   int
	err    error
	silent bool
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// cli is what every command shares: the streams and the flags of the root command.
type cli struct {
	in       io.Reader
	out, err io.Writer

	// terminal says that a person reads out.
	terminal bool

	configPath string
	socket     string
	json       bool
}

func execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	c := &cli{in: in, out: out, err: errOut, terminal: isTerminal(out)}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	code := exitUsage
	var exit *exitError
	if errors.As(err, &exit) {
		code = exit.code
		if exit.silent {
			return code
		}
	}
	sayf(errOut, "hermesd: %s\n", indented(err.Error(), "  "))
	if code == exitUsage {
		sayf(errOut, "See `%s --help`.\n", cmd.CommandPath())
	}
	return code
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "hermesd",
		Short: "The daemon between AI agents and their tools",
		Long: `hermesd stands between AI agents and their tools. An agent sees its core tools and three
bridge tools (search, describe, call) instead of thousands of schemas; every call is
checked, validated and on record before it runs.

To begin: take over the MCP servers of other programs with "hermesd import", run "hermesd serve",
and give agents the command "hermesd mcp", or the address that serve prints. What is wrong, and
what to do about it, says "hermesd doctor". Commands that speak to the running daemon need its
configuration file or --socket, and none of its secrets.

Exit codes: 0 it worked, 1 it did not, 2 the command line is wrong, 3 no daemon answers,
4 the tool answered with an error.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.StringVarP(&c.configPath, "config", "c", os.Getenv("HERMESD_CONFIG"), "configuration file (env HERMESD_CONFIG; default "+config.DefaultPath(nil)+")")
	flags.StringVar(&c.socket, "socket", os.Getenv("HERMESD_SOCKET"), "the daemon's admin socket (env HERMESD_SOCKET; default: what the configuration says)")
	flags.BoolVar(&c.json, "json", false, "print JSON, for programs")
	root.SetHelpCommand(helpCommand(root))
	root.AddCommand(c.serveCommand(), c.mcpCommand(), c.mcpServerCommand(), c.importCommand(), c.toolCommand(), c.pluginCommand(), c.agentCommand(), c.approvalsCommand(), c.auditCommand(), c.policyCommand(), c.configCommand(), c.doctorCommand(), c.versionCommand())
	root.InitDefaultCompletionCmd()
	group(root)
	return root
}

// failure is an error of a command that was understood.
func failure(err error) error {
	if err == nil {
		return nil
	}
	var exit *exitError
	if errors.As(err, &exit) {
		return err
	}
	return &exitError{code: exitFailure, err: err}
}

// run wraps a command's function so that its errors are failures, not errors of usage.
func run(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return failure(f(cmd, args)) }
}

// dial connects to the running daemon.
func (c *cli) dial(ctx context.Context) (*admin.Client, error) {
	socket, err := c.adminSocket()
	if err != nil {
		return nil, err
	}
	return dial(ctx, socket)
}

// adminSocket is where the daemon is reached.
func (c *cli) adminSocket() (string, error) {
	if c.socket != "" {
		return c.socket, nil
	}
	cfg, err := c.load()
	if err != nil {
		return "", err
	}
	return cfg.Listen.Admin, nil
}

func dial(ctx context.Context, socket string) (*admin.Client, error) {
	client, err := admin.Dial(ctx, socket)
	if err != nil {
		return nil, &exitError{code: exitNoDaemon, err: fmt.Errorf("%w. For another daemon, such as a service's, name its socket: --socket PATH, or HERMESD_SOCKET", err)}
	}
	return client, nil
}

// printJSON writes a value as indented JSON.
func (c *cli) printJSON(v any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// self is the path of this binary, as a person would type it.
func self() string {
	if path, err := os.Executable(); err == nil {
		if cwd, err := os.Getwd(); err == nil {
			if rel, err := filepath.Rel(cwd, path); err == nil && filepath.IsLocal(rel) {
				return rel
			}
		}
		return path
	}
	return "hermesd"
}
