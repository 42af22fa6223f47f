package integration

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// patience bounds what a test waits for; a loaded machine must not fail it.
const patience = 60 * time.Second

// bin is the folder with hermesd and, below plugins/, the plugins: built once for the package.
var bin string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == probeArg {
		os.Exit(probe(os.Args[2:]))
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "hermesd-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	if err := os.Mkdir(filepath.Join(dir, "t"), 0o700); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for target, packages := range map[string][]string{"": {"./cmd/hermesd"}, "plugins": {"./plugins/...", "./examples/plugins/..."}} {
		out := filepath.Join(dir, target) + string(filepath.Separator)
		cmd := exec.Command("go", append([]string{"build", "-o", out}, packages...)...)
		cmd.Dir = filepath.Join("..", "..")
		if report, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, report)
			return 1
		}
	}
	return m.Run()
}

func plugin(name string) string { return filepath.Join(bin, "plugins", name) }

// running is a daemon in a process of its own.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	dir    string // configuration, state and socket
	config string
	url    string // http://127.0.0.1:PORT
	out    *output
	ended  chan struct{}
}

// output collects what a process prints and tells when a text has appeared.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(b)
	close(o.changed)
	o.changed = make(chan struct{})
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// find waits until one line of the output begins with prefix, blanks apart, and returns its rest.
func (o *output) find(ctx context.Context, prefix string) (string, bool) {
	for {
		o.mu.Lock()
		text, changed := o.text.String(), o.changed
		o.mu.Unlock()
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok && strings.HasSuffix(line, "\n") {
				return strings.TrimSpace(rest), true
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", false
		}
	}
}

// start runs `hermesd serve` on a configuration, to which a state directory and a free port are added, and waits until
// it is ready.
func start(t *testing.T, blocks string, env ...string) *running {
	t.Helper()
	d := launch(t, blocks, env...)
	d.awaitReady()
	return d
}

// awaitReady waits until the daemon says where it listens.
func (d *running) awaitReady() {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	url, ok := d.out.find(ctx, "MCP over HTTP")
	if !ok {
		d.t.Fatalf("the daemon did not become ready:\n%s", d.out)
	}
	d.url = strings.TrimSuffix(url, "/mcp")
}

// launch is start without the wait.
func launch(t *testing.T, blocks string, env ...string) *running {
	t.Helper()
	dir := t.TempDir()
	text := blocks
	if !strings.Contains(blocks, "state_dir") {
		text = fmt.Sprintf("state_dir = %q\n", filepath.Join(dir, "state")) + text
	}
	if !strings.Contains(blocks, "listen {") {
		text = "listen {\n  http = \"127.0.0.1:0\"\n}\n" + text
	}
	config := filepath.Join(dir, "hermesd.hcl")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return launchConfig(t, dir, config, env...)
}

func launchConfig(t *testing.T, dir, config string, env ...string) *running {
	t.Helper()
	out := &output{changed: make(chan struct{})}
	cmd := exec.Command(filepath.Join(bin, "hermesd"), "serve", "-c", config)
	cmd.Stdout, cmd.Stderr = out, out
	// A killed daemon leaves its sockets' folder in the temporary one, which goes with the package's binaries.
	cmd.Env = append(append(os.Environ(), "TMPDIR="+filepath.Join(bin, "t")), env...)
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &running{t: t, cmd: cmd, dir: dir, config: config, out: out, ended: make(chan struct{})}
	go func() {
		defer close(d.ended)
		// How it ended is asked of cmd.ProcessState by the test that wants to know.
		if err := cmd.Wait(); err != nil {
			fmt.Fprintf(out, "daemon ended: %v\n", err)
		}
	}()
	t.Cleanup(func() {
		d.stop()
		if t.Failed() {
			t.Logf("the daemon's output:\n%s", out)
		}
	})
	return d
}

// stop ends the daemon as an operator would, and by force if it does not go.
func (d *running) stop() {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return // it has ended
	}
	select {
	case <-d.ended:
	case <-time.After(patience):
		d.t.Errorf("the daemon did not stop on SIGTERM:\n%s", d.out)
		d.kill()
	}
}

// kill ends the daemon as the kernel would.
func (d *running) kill() {
	if err := d.cmd.Process.Kill(); err == nil {
		<-d.ended
	}
}

// connect makes a session with the official Go SDK.
func (d *running) connect(opts *sdk.ClientOptions) *sdk.ClientSession {
	d.t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "integration", Version: "1"}, opts)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: d.url + "/mcp", HTTPClient: http.DefaultClient}, nil)
	if err != nil {
		d.t.Fatalf("connect: %v\n%s", err, d.out)
	}
	d.t.Cleanup(func() {
		if err := session.Close(); err != nil {
			d.t.Logf("close the session: %v", err)
		}
	})
	return session
}

// call calls a tool and returns its text, and whether it was an error.
func call(t *testing.T, s *sdk.ClientSession, name string, args any) (text string, isError bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	result, err := s.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("call %s: %v", name, err)
	}
	return textOf(result), result.IsError
}

func textOf(result *sdk.CallToolResult) string {
	var b strings.Builder
	for _, c := range result.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

// eventually polls a condition of another process, for which there is nothing to wait on.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("it did not come to this: %s", what)
		case <-tick.C:
		}
	}
}

// hermesd runs a command of the command line against the daemon.
func (d *running) hermesd(args ...string) (stdout, stderr string, code int) {
	d.t.Helper()
	return hermesd(d.t, d.config, args...)
}

func hermesd(t *testing.T, config string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "hermesd"), append(args, "-c", config)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
