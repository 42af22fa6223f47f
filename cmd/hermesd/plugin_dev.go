package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
)

// settle is how long nothing must have been saved before a build begins: editors write several files at once.
const settle = 200 * time.Millisecond

func (c *cli) pluginDevCommand() *cobra.Command {
	var (
		p       program
		name    string
		command []string
		grant   []string
	)
	cmd := &cobra.Command{
		Use:   "dev [FOLDER]",
		Short: "Try a plugin in the running daemon while it is being written",
		Long: `Builds the Go plugin in a folder (default: this one) and attaches it to the running daemon; agents
can call its tools at once. Whenever a file is saved it is built and loaded again; while it does
not build, the version before keeps running. Ctrl-C takes it out of the daemon.

If the configuration has a plugin of that name, this one takes its place meanwhile, with its
config, env and grant. For a plugin that is not built by the go command, --command says what to
start: it is started again whenever a file is saved.`,
		Example: "  hermesd plugin dev ./weather\n  hermesd plugin dev ./notes --command node --command main.js",
		Args:    cobra.MaximumNArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			s, err := c.newDevSession(dir, name, command)
			if err != nil {
				return err
			}
			defer s.close()
			config, err := p.configuration()
			if err != nil {
				return err
			}
			env, err := p.environment()
			if err != nil {
				return err
			}
			return s.run(cmd.Context(), &adminpb.DevPlugin{Name: s.name, Command: s.command, Config: config, Env: env, Grant: grant})
		}),
	}
	p.flags(cmd)
	cmd.Flags().StringVar(&name, "name", "", "the provider's name in the daemon (default: the folder's)")
	cmd.Flags().StringArrayVar(&command, "command", nil, "the program to start and, repeated, its arguments, in place of building a Go plugin; arguments that are files of FOLDER are found there")
	cmd.Flags().StringArrayVar(&grant, "grant", nil, "what the plugin may ask of the daemon: ask_human, call_tool, sample, store; may be repeated")
	return cmd
}

// devSession is one run of `plugin dev`.
type devSession struct {
	cli     *cli
	dir     string
	name    string
	command []string // what the daemon starts
	build   string   // folder of the built program; "" if there is nothing to build
	loaded  [sha256.Size]byte
}

func (c *cli) newDevSession(dir, name string, command []string) (*devSession, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(abs); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder; name the one that holds the plugin's source", dir)
	}
	s := &devSession{cli: c, dir: abs, name: name}
	if s.name == "" {
		s.name = filepath.Base(abs)
	}
	if len(command) > 0 {
		s.command, err = s.resolve(command)
		return s, err
	}
	if s.build, err = os.MkdirTemp("", "hermesd-dev-"); err != nil {
		return nil, err
	}
	s.command = []string{filepath.Join(s.build, s.name)}
	return s, nil
}

// resolve makes the program's path, and arguments that are files of the folder, independent of where the daemon runs.
func (s *devSession) resolve(command []string) ([]string, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, fmt.Errorf("--command: %w", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	out := []string{path}
	for _, arg := range command[1:] {
		if file := filepath.Join(s.dir, arg); !strings.HasPrefix(arg, "-") {
			if _, err := os.Stat(file); err == nil {
				arg = file
			}
		}
		out = append(out, arg)
	}
	return out, nil
}

func (s *devSession) close() {
	if s.build != "" {
		if err := os.RemoveAll(s.build); err != nil {
			sayf(s.cli.err, "hermesd: %v\n", err)
		}
	}
}

// run attaches the plugin and keeps it up to date until ctx ends or the daemon does.
func (s *devSession) run(ctx context.Context, plugin *adminpb.DevPlugin) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close() //nolint:errcheck // nothing is lost with it
	if err := watchTree(watcher, s.dir); err != nil {
		return err
	}
	client, err := s.cli.dial(ctx)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // the stream has ended by then
	changed := saved(ctx, watcher)
	for !s.make(ctx) { // nothing can be attached before it builds once
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
	stream, err := client.DevAttach(ctx)
	if err != nil {
		return err
	}
	if err := send(stream, &adminpb.DevRequest{Request: &adminpb.DevRequest_Plugin{Plugin: plugin}}); err != nil {
		return err
	}
	sayf(s.cli.out, "%s is attached; watching %s. Ctrl-C ends it.\n", s.name, s.dir)
	failed := make(chan error, 1)
	go func() { failed <- s.tell(stream) }()
	for {
		select {
		case <-changed:
			if s.make(ctx) {
				if err := send(stream, &adminpb.DevRequest{Request: &adminpb.DevRequest_Reload{Reload: &adminpb.DevReload{}}}); err != nil {
					return err
				}
			}
		case err := <-failed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// send leaves the reason why a stream has ended to the one who receives from it.
func send(stream grpc.BidiStreamingClient[adminpb.DevRequest, adminpb.DevEvent], req *adminpb.DevRequest) error {
	if err := stream.Send(req); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// make builds the program and reports whether there is a new one to load. While it does not build, the one before stays.
func (s *devSession) make(ctx context.Context) bool {
	if s.build == "" {
		return true
	}
	next := filepath.Join(s.build, "next")
	if said, err := buildPlugin(ctx, s.dir, next); err != nil {
		if ctx.Err() == nil {
			sayf(s.cli.err, "it does not build (%v):\n%s\n", err, lines(said))
			if s.loaded != [sha256.Size]byte{} {
				sayf(s.cli.err, "the version before keeps running\n")
			}
		}
		return false
	}
	raw, err := os.ReadFile(next)
	if err == nil {
		if sum := sha256.Sum256(raw); sum == s.loaded {
			return false // what was saved is no part of the program
		} else if err = os.Rename(next, s.command[0]); err == nil {
			s.loaded = sum
			return true
		}
	}
	sayf(s.cli.err, "the built program cannot be put in its place: %v\n", err)
	return false
}

// tell prints how the provider does until the stream ends.
func (s *devSession) tell(stream grpc.BidiStreamingClient[adminpb.DevRequest, adminpb.DevEvent]) error {
	last := ""
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("the daemon has ended the session")
		}
		if err != nil {
			return err
		}
		status := event.GetStatus()
		line := status.GetState()
		if status.GetReason() != "" {
			line += ": " + printable(status.GetReason())
		}
		if status.GetState() == "ready" {
			line = fmt.Sprintf("ready (pid %d): %s", status.GetPid(), strings.Join(event.GetTools(), ", "))
		}
		for name, reason := range status.GetUnmet() {
			line += fmt.Sprintf("\n  %s is not offered: %s", printable(name), printable(reason))
		}
		for name, reason := range status.GetRefused() {
			line += fmt.Sprintf("\n  %s is refused: %s", printable(name), printable(reason))
		}
		if line != last {
			sayf(s.cli.out, "%s %s\n", time.Now().Format(time.TimeOnly), lines(line))
			last = line
		}
	}
}

// watchTree watches a folder and those below it. Hidden ones and installed packages are left out.
func watchTree(w *fsnotify.Watcher, root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case path != root && ignored(path):
			return fs.SkipDir
		}
		if err := w.Add(path); err != nil {
			return fmt.Errorf("watch %s: %w", path, err)
		}
		return nil
	})
}

// ignored are hidden files, what editors keep beside a file, and installed packages.
func ignored(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || name == "node_modules" || name == "__pycache__"
}

// saved tells, once for each burst, that files were saved.
func saved(ctx context.Context, w *fsnotify.Watcher) <-chan struct{} {
	out := make(chan struct{}, 1)
	go func() {
		quiet := time.NewTimer(settle)
		quiet.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case event, ok := <-w.Events:
				if !ok {
					return
				}
				if ignored(event.Name) || event.Op == fsnotify.Chmod {
					continue
				}
				if info, err := os.Stat(event.Name); err == nil && info.IsDir() && event.Has(fsnotify.Create) {
					if err := watchTree(w, event.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
						sayf(os.Stderr, "hermesd: %v\n", err)
					}
				}
				quiet.Reset(settle)
			case err, ok := <-w.Errors:
				if !ok {
					return
				}
				sayf(os.Stderr, "hermesd: watching files: %v\n", err)
			case <-quiet.C:
				select {
				case out <- struct{}{}:
				default: // one is pending already
				}
			}
		}
	}()
	return out
}
