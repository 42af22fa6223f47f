package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/cmd/hermesd/join"
	"github.com/hermesd/hermesd/runtime/daemon"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/mcpclient"
)

func (c *cli) mcpCommand() *cobra.Command {
	var agent, client string
	var standalone bool
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve one MCP client over standard input and output",
		Long: `Serves an MCP client that starts its servers as programs. It joins the running daemon over its
socket, and joins it again when the daemon was restarted; with --standalone everything runs in this
process, on a state directory of its own, and ends with it. Nothing but the protocol reaches standard
output; the log goes to standard error.

In a client's file of servers that is {"command": "hermesd", "args": ["mcp"]}. Joining takes none of the
secrets of the configuration; --standalone takes all of them, in this process's environment.`,
		Example: `  hermesd mcp                      # joins the daemon
  hermesd mcp --standalone -c FILE # needs no daemon`,
		Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if standalone {
				return c.standalone(cmd.Context(), agent)
			}
			return c.join(cmd.Context(), agent, client)
		}),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "which agent the client is (default: the local agent)")
	cmd.Flags().StringVar(&client, "client", "", "the client's name, for the daemon's log")
	cmd.Flags().BoolVar(&standalone, "standalone", false, "run everything in this process")
	return cmd
}

// join serves the client from the running daemon, and from the next one when that has ended.
func (c *cli) join(ctx context.Context, agent, client string) error {
	socket, err := c.adminSocket()
	if err != nil {
		return err
	}
	via := os.Getenv(mcpclient.ViaEnvironment)
	options := &join.Options{
		In: c.in, Out: c.out, Logger: slog.New(slog.NewTextHandler(c.err, nil)),
		Dial: func(ctx context.Context) (join.Conn, error) {
			daemon, err := dial(ctx, socket)
			if err != nil {
				return nil, err
			}
			session, err := daemon.Attach(ctx, agent, client, via)
			if err != nil {
				return nil, errors.Join(err, daemon.Close())
			}
			return attachment{session, daemon}, nil
		},
	}
	in, inFile := c.in.(*os.File)
	out, outFile := c.out.(*os.File)
	if inFile && outFile && admin.CanHandOver(in, out) {
		options.HandOver = func(ctx context.Context) (admin.Along, error) {
			daemon, err := dial(ctx, socket)
			if err != nil {
				return nil, err
			}
			along, err := daemon.HandOver(ctx, agent, client, via, in, out)
			return along, errors.Join(err, daemon.Close())
		}
	}
	return join.Run(ctx, options)
}

// attachment is a session with the connection that is its own.
type attachment struct {
	*admin.Attachment
	daemon *admin.Client
}

func (a attachment) Close() error { return errors.Join(a.Attachment.Close(), a.daemon.Close()) }

// standaloneState is the folder below the state directory that a daemon without listeners keeps its state in, so that it
// does not meet the running daemon's.
const standaloneState = "standalone"

// firstList is how long a standalone daemon waits for slow providers before it serves what it knows: many clients read the
// list of tools once.
const firstList = 10 * time.Second

func (c *cli) standalone(ctx context.Context, agent string) error {
	cfg, err := c.loadWhole()
	if err != nil {
		return err
	}
	logger, closeLog, err := newLogger(&cfg.Log, c.err)
	if err != nil {
		return err
	}
	defer closeLog()
	cfg.StateDir = filepath.Join(cfg.StateDir, standaloneState)
	d, err := daemon.New(&daemon.Options{Config: cfg, Version: version, Standalone: true, Logger: logger})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go tuneMemory(ctx)
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-d.Settled():
	case <-time.After(firstList): // the client hears of later tools by a notification
	}
	err = d.ServeStream(ctx, agent, stdio{c.in, c.out})
	stop()
	return errors.Join(err, <-ended)
}

// stdio joins the two standard streams. Closing it closes standard input if that is a file, so that a pending read ends.
type stdio struct {
	io.Reader
	io.Writer
}

func (s stdio) Close() error {
	if in, ok := s.Reader.(io.Closer); ok {
		return in.Close()
	}
	return nil
}
