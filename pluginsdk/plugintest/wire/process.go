package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

const (
	// startTimeout bounds a start until the handshake line, as in the daemon.
	startTimeout = 10 * time.Second
	// maxKept bounds what is kept of stdout and of stderr, each.
	maxKept = 64 << 10
	// closeGrace is how long Close waits after SIGTERM before it kills.
	closeGrace = 5 * time.Second
)

// Program is a plugin that is started as a process, without certificates.
type Program struct {
	Path string
	Args []string // without the program's name
	// Env are variables of the process besides PATH, HOME, LANG and TZ.
	Env map[string]string
}

// Process is a started plugin.
type Process struct {
	cmd      *exec.Cmd
	lifeline *os.File // our end
	dir      string   // of its socket
	stdout   *kept    // what came after the handshake line
	stderr   *kept
	ended    chan struct{}
	err      error // of Wait, after ended
}

// Open implements [Target]: it starts the process and shakes hands.
func (p Program) Open(ctx context.Context, opts *OpenOptions) (*Session, error) {
	dir, err := os.MkdirTemp("", "hermesd-plugin-")
	if err != nil {
		return nil, err
	}
	proc := &Process{dir: dir, stdout: &kept{}, stderr: &kept{}, ended: make(chan struct{})}
	address, err := proc.start(ctx, &p, opts.limit())
	if err != nil {
		proc.kill()
		return nil, errors.Join(proc.explain(err), os.RemoveAll(dir))
	}
	conn, err := grpc.NewClient("passthrough:plugin", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", address)
		}),
		grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(opts.limit()), grpc.MaxCallSendMsgSize(opts.limit())))
	if err != nil {
		proc.kill()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Session{PluginClient: pb.NewPluginClient(conn), Process: proc, limit: opts.limit(), conn: conn, end: proc.close}, nil
}

// start runs the program and returns the address of its socket.
func (p *Process) start(ctx context.Context, program *Program, limit int) (string, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer theirs.Close() //nolint:errcheck // the process has its own copy
	p.lifeline = ours
	path := program.Path
	if strings.ContainsRune(path, filepath.Separator) {
		if path, err = filepath.Abs(path); err != nil {
			return "", err
		}
	}
	p.cmd = exec.Command(path, program.Args...)
	p.cmd.Env = environment(program.Env, map[string]string{
		pb.MagicCookieKey: pb.MagicCookieValue, pb.LifelineEnv: "3", pb.MaxMessageEnv: strconv.Itoa(limit),
		"PLUGIN_PROTOCOL_VERSIONS": strconv.Itoa(pb.ProtocolVersion), "PLUGIN_UNIX_SOCKET_DIR": p.dir,
	})
	p.cmd.ExtraFiles = []*os.File{theirs}
	p.cmd.Stderr = p.stderr
	p.cmd.WaitDelay = time.Second
	ownGroup(p.cmd)
	stdout, stdin, err := os.Pipe()
	if err != nil {
		return "", err
	}
	p.cmd.Stdout = stdin
	err = p.cmd.Start()
	stdin.Close() //nolint:errcheck // the process has its own copy
	if err != nil {
		stdout.Close() //nolint:errcheck // nothing was read
		close(p.ended)
		return "", err
	}
	go func() { p.err = p.cmd.Wait(); close(p.ended) }()
	first := make(chan string, 1)
	go p.read(stdout, first)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case line := <-first:
		return address(line)
	case <-ctx.Done():
		return "", fmt.Errorf("it printed no handshake line on stdout within %v", startTimeout)
	}
}

// read hands on the first line and keeps the rest of stdout.
func (p *Process) read(stdout io.ReadCloser, first chan<- string) {
	defer stdout.Close() //nolint:errcheck // only read
	r := bufio.NewReader(io.LimitReader(stdout, maxKept))
	line, _ := r.ReadString('\n') // an end without a newline is a line, too
	first <- line
	io.Copy(p.stdout, io.MultiReader(r, stdout)) //nolint:errcheck // ends with the process
}

// address takes the handshake line apart.
func address(line string) (string, error) {
	f := strings.Split(strings.TrimSpace(line), "|")
	switch {
	case len(f) < 5:
		return "", fmt.Errorf("the first line on stdout is %q; it must be the handshake, such as 1|1|unix|/path/of/the/socket|grpc|", cut(line))
	case f[0] != "1" || f[1] != strconv.Itoa(pb.ProtocolVersion):
		return "", fmt.Errorf("the handshake names the versions %s and %s; they must be 1 and %d", f[0], f[1], pb.ProtocolVersion)
	case f[2] != "unix":
		return "", fmt.Errorf("the handshake names the network %q; it must be unix", f[2])
	case f[4] != "grpc":
		return "", fmt.Errorf("the handshake names the protocol %q; it must be grpc", f[4])
	case len(f) > 5 && f[5] != "":
		return "", errors.New("the handshake brings a certificate although the host sent none in PLUGIN_CLIENT_CERT")
	}
	return f[3], nil
}

func cut(s string) string { return s[:min(len(s), 200)] }

// environment is a clean one.
func environment(sets ...map[string]string) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG", "TZ"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for _, set := range sets {
		for name, v := range set {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// explain adds what the process said to an error of its start.
func (p *Process) explain(err error) error {
	select {
	case <-p.ended:
		if p.cmd != nil && p.cmd.ProcessState != nil {
			err = fmt.Errorf("%w (it ended with %v)", err, p.cmd.ProcessState)
		}
	default:
	}
	if text := strings.TrimSpace(p.stderr.String()); text != "" {
		err = fmt.Errorf("%w; on stderr it wrote: %s", err, text)
	}
	return err
}

// PID is the process's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Printed is what the process printed on stdout after the handshake line; at most 64 KiB are kept.
func (p *Process) Printed() string { return p.stdout.String() }

// Stderr is what it printed there, likewise.
func (p *Process) Stderr() string { return p.stderr.String() }

// CutLifeline lets the plugin believe that its host has died.
func (p *Process) CutLifeline() error { return p.lifeline.Close() }

// Terminate asks the process to end and waits at most for the time given.
func (p *Process) Terminate(within time.Duration) error {
	if err := terminate(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return p.Wait(within)
}

// Wait waits at most for the time given for the process's end.
func (p *Process) Wait(within time.Duration) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("process %d still runs after %v", p.PID(), within)
	}
}

// Stragglers reports whether anything of the process's group is left.
func (p *Process) Stragglers() bool { return groupAlive(p.PID()) }

func (p *Process) close() error {
	err := p.Terminate(closeGrace)
	p.kill()
	return errors.Join(err, os.RemoveAll(p.dir))
}

// kill ends the process's whole group. What it started outlives it otherwise.
func (p *Process) kill() {
	if p.cmd != nil && p.cmd.Process != nil {
		killGroup(p.cmd.Process)
		<-p.ended
	}
	if p.lifeline != nil {
		p.lifeline.Close() //nolint:errcheck // CutLifeline may have closed it
	}
}

// kept keeps the beginning of what is written to it.
type kept struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (k *kept) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.text.Write(b[:min(len(b), maxKept-k.text.Len())])
	return len(b), nil
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}
