package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/daemon"
)

func (c *cli) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long:  "Runs the daemon in the foreground until SIGINT or SIGTERM. Calls in flight may then finish\n(shutdown_timeout), providers are stopped, and a second signal ends it at once.",
		Args:  cobra.NoArgs,
		RunE:  run(func(cmd *cobra.Command, _ []string) error { return c.serve(cmd.Context()) }),
	}
}

func (c *cli) serve(ctx context.Context) error {
	cfg, err := c.loadWhole()
	if err != nil {
		return err
	}
	logger, closeLog, err := newLogger(&cfg.Log, c.err)
	if err != nil {
		return err
	}
	defer closeLog()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go tuneMemory(ctx)
	d, err := daemon.New(&daemon.Options{Config: cfg, Version: version, Service: config.ProcessEnvironment().Service, Logger: logger})
	if err != nil {
		return err
	}
	// A tool's command must not get out of sight by losing its parent: it could answer its own approval.
	if err := procgroup.Adopt(ctx); err != nil {
		logger.Warn("programs that detach themselves from their provider cannot be told from others", "error", err)
	}
	defer surviveHangup(logger)()
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-d.Ready():
		c.welcome(d)
		return <-ended
	}
}

// welcome says where agents connect and what to try first.
func (c *cli) welcome(d *daemon.Daemon) {
	path, named := c.path()
	me := self()
	if named {
		me += " -c " + path
	}
	a := d.Addresses()
	sayf(c.out, "hermesd %s is ready.\n\nAgents connect here:\n", version)
	if a.HTTP != "" {
		sayf(c.out, "  MCP over HTTP      %s/mcp\n  function calling   %s/v1/tools and %s/v1/calls\n", a.HTTP, a.HTTP, a.HTTP)
	}
	sayf(c.out, "  MCP over stdio     %s mcp\n\nA first search, in another terminal:\n  %s tool search \"greet a person\"\n", me, me)
}

// surviveHangup keeps SIGHUP, which many send to make a daemon read its configuration again, from ending it. The returned
// function ends that.
func surviveHangup(logger *slog.Logger) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for range hangups {
			logger.Warn("SIGHUP: the configuration is read when the daemon starts; restart it to apply a changed file")
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(hangups)
	}
}

var levels = map[string]slog.Level{
	"trace": slog.LevelDebug - 4, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// newLogger makes the daemon's own log.
func newLogger(cfg *config.Log, stderr io.Writer) (*slog.Logger, func(), error) {
	out, done := stderr, func() {}
	if cfg.File != "" {
		f, err := os.OpenFile(cfg.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("log file: %w; set log { file } to a path that can be written", err)
		}
		out, done = f, func() { f.Close() }
	}
	options := &slog.HandlerOptions{Level: levels[cfg.Level]}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(out, options)), done, nil
	}
	return slog.New(slog.NewTextHandler(out, options)), done, nil
}
