package pluginhost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	gorunner "github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/hermesd/hermesd/internal/procgroup"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/pluginhost/sandbox"
	"github.com/hermesd/hermesd/runtime/provider/providerlog"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
)

// instance is one running process with its connection. It implements supervisor.Instance.
type instance struct {
	pb.PluginClient
	runner *runner
	client *plugin.Client // of the library
	log    *providerlog.Log
	grace  time.Duration
	digest string // of what was executed

	ctx    context.Context // ends when the instance is being stopped or the process has ended
	cancel context.CancelFunc
	owned  sync.WaitGroup

	describe *pb.DescribeResponse
	recheck  chan struct{} // capacity 1: look at the process's health now
}

// launch starts the process and connects to it. The error says what was seen.
func (p *Provider) launch(ctx context.Context) (*instance, error) {
	o := p.opts
	file, path, digest, err := p.program.open()
	if file != nil {
		defer file.Close() //nolint:errcheck // only read
	}
	seen := &sighting{path: path, err: err, file: readerAt(file), confined: o.Isolation != IsolationNone}
	if path == "" {
		seen.path = cmp.Or(o.Path, o.Name)
	}
	if err != nil {
		if errors.As(err, new(supervisor.Permanent)) {
			p.recallLast()
		}
		return nil, seen.explainOpen()
	}
	if err := os.MkdirAll(o.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the plugin's state folder: %w", err)
	}
	i := &instance{
		log: p.log, grace: o.StopGrace, digest: digest,
		recheck: make(chan struct{}, 1),
	}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	i.runner = &runner{command: p.command(path, file), lines: p.log.Printed, mask: o.Mask, tail: procgroup.Tail(stderrTail)}
	i.client = plugin.NewClient(p.clientConfig(i.runner))

	// The library's Start knows no context, but it ends when the process does.
	abort := context.AfterFunc(ctx, func() { i.runner.abort() })
	if err = i.connect(); err == nil {
		err = p.introduce(ctx, i)
	}
	if !abort() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if end := ctx.Err(); end != nil && !errors.Is(err, end) {
			err = end // whatever the library says, it is because the process was killed
		}
		i.sight(seen, err)
		i.stop(0)
		return nil, seen.explain()
	}
	p.mu.Lock()
	p.running = p.opts.layersOf(i.runner.process)
	p.mu.Unlock()
	i.owned.Go(i.awaitEnd)
	i.owned.Go(func() { p.watch(i) })
	i.owned.Go(func() { p.attend(i) })
	return i, nil
}

// explainOpen explains a file that could not be opened. A wrong digest explains itself.
func (s *sighting) explainOpen() error {
	var path *os.PathError
	if errors.As(s.err, &path) {
		return s.explain()
	}
	return s.err
}

func (p *Provider) command(path string, file *os.File) *procgroup.Command {
	o := p.opts
	cmd := &procgroup.Command{
		Path: path, Name: path, Args: o.Args, Lifeline: true,
		Env: procgroup.Environment(o.PassEnv, o.Env, os.LookupEnv),
	}
	if executable != "" {
		cmd.Path, cmd.ExtraFiles = executable, []*os.File{file}
	}
	return cmd
}

// confine applies the isolation to a command whose environment is complete.
func (o *Options) confine(cmd *procgroup.Command) error {
	box := o.Sandbox
	box.Level, box.Program, box.Config, box.StateDir = o.Isolation, cmd.Name, o.Config, o.StateDir
	box.Private = append(slices.Clip(box.Private), o.keysDir())
	for _, e := range cmd.Env {
		if dir, ok := strings.CutPrefix(e, plugin.EnvUnixSocketDir+"="); ok {
			box.Sockets = dir
		}
	}
	return sandbox.Confine(cmd, &box)
}

func (p *Provider) clientConfig(r *runner) *plugin.ClientConfig {
	o := p.opts
	return &plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: pb.ProtocolVersion, MagicCookieKey: pb.MagicCookieKey, MagicCookieValue: pb.MagicCookieValue,
		},
		Plugins:          plugin.PluginSet{pb.PluginName: connector{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, sockets string) (gorunner.Runner, error) {
			r.sockets = sockets
			r.command.Env = append(r.command.Env, cmd.Env...)
			r.command.Env = append(r.command.Env, pb.MaxMessageEnv+"="+strconv.Itoa(o.MaxMessageBytes))
			return r, o.confine(r.command)
		},
		SkipHostEnv:      true,
		AutoMTLS:         o.mtls(),
		StartTimeout:     o.StartTimeout,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: socketRoot(o.RuntimeDir)},
		Logger:           hclog.NewNullLogger(),
		Stderr:           io.Discard,
		SyncStdout:       lineWriter{p.log, providerlog.FromStdout},
		SyncStderr:       lineWriter{p.log, providerlog.FromStderr},
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(o.MaxMessageBytes), grpc.MaxCallSendMsgSize(o.MaxMessageBytes)),
			// A window of its own choice would be measured with a ping for each answer, which costs more than a small call.
			grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
			grpc.WithDisableRetry(),
		},
	}
}

// window is how many bytes of an answer may be on their way to the daemon, which is on the same machine.
const window = 1 << 20

// lineWriter takes what go-plugin's own server sends of its redirected output.
type lineWriter struct {
	log    *providerlog.Log
	stream string
}

func (w lineWriter) Write(b []byte) (int, error) {
	w.log.Printed(w.stream, trimNewline(b))
	return len(b), nil
}

// connector makes the client of the one service.
type connector struct{ plugin.NetRPCUnsupportedPlugin }

func (connector) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("pluginhost serves no plugin")
}

func (connector) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return pb.NewPluginClient(conn), nil
}

func (i *instance) connect() error {
	if _, err := i.client.Start(); err != nil {
		return err
	}
	client, err := i.client.Client()
	if err != nil {
		return err
	}
	raw, err := client.Dispense(pb.PluginName)
	if err != nil {
		return err
	}
	i.PluginClient = raw.(pb.PluginClient)
	return nil
}

// sight notes what can be seen of a process that did not become a plugin. An exit is waited for a moment: the connection
// breaks before the process has been reaped.
func (i *instance) sight(s *sighting, err error) {
	s.err, s.first, s.tail = err, i.runner.mask(i.runner.firstLine()), i.runner.tail.Lines()
	process := i.runner.process
	if process == nil {
		return
	}
	select {
	case <-process.Done():
	case <-time.After(exitWait):
		return
	}
	i.runner.settle()
	s.first, s.tail = i.runner.mask(i.runner.firstLine()), i.runner.tail.Lines()
	if exit := process.ExitState(); !exit.Stopped {
		s.exit = &exit
	}
}

// exitWait is how long a broken connection waits for the news of why: a process that ended has been reaped by then.
const exitWait = time.Second

// awaitEnd ends what belongs to the process with it.
func (i *instance) awaitEnd() {
	select {
	case <-i.runner.process.Done():
		i.cancel()
	case <-i.ctx.Done():
	}
}

// Done implements supervisor.Instance.
func (i *instance) Done() <-chan struct{} { return i.runner.process.Done() }

// PID is the process's.
func (i *instance) PID() int { return i.runner.process.PID() }

// Err implements supervisor.Instance.
func (i *instance) Err() error {
	text := "the plugin's process ended (" + i.runner.process.ExitState().String() + ")"
	if tail := procgroup.Telling(i.runner.tail.Lines(), quotedLines); len(tail) > 0 {
		text += "; the last it wrote to stderr: " + quote(strings.Join(tail, " | "))
	}
	return errors.New(text)
}

// Stop implements supervisor.Instance: running calls may end, then the process is asked to, then it is killed; all within
// the grace.
func (i *instance) Stop(ctx context.Context) {
	grace := i.grace
	if end, ok := ctx.Deadline(); ok {
		grace = min(grace, time.Until(end))
	}
	if ctx.Err() != nil {
		grace = 0
	}
	defer context.AfterFunc(ctx, i.runner.abort)() // the grace may be cut short
	i.stop(i.drain(ctx, max(grace, 0)))
}

// drain gives the plugin half of the grace to finish its calls and returns what is left of it.
func (i *instance) drain(ctx context.Context, grace time.Duration) time.Duration {
	if grace == 0 || i.PluginClient == nil {
		return grace
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, grace/2)
	defer cancel()
	if _, err := i.Drain(ctx, &pb.DrainRequest{}); err != nil {
		i.log.Logger().Debug("plugin did not drain", "error", err)
	}
	return max(grace-time.Since(begin), 0)
}

// stop ends the process and everything around it. Only then is the library told, which would otherwise wait for the
// process without a bound.
func (i *instance) stop(grace time.Duration) {
	i.cancel()
	i.runner.stop(grace)
	i.client.Kill()
	if err := os.RemoveAll(i.runner.sockets); err != nil { // the library leaves it where no process ever ran
		i.log.Logger().Warn("plugin's socket folder was not removed", "error", err)
	}
	i.owned.Wait()
	i.log.Flush()
}
