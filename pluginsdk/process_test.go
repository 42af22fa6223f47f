package pluginsdk_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// client is the host's side of go-plugin, for this test only.
type client struct{ plugin.NetRPCUnsupportedPlugin }

func (client) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (client) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return pb.NewPluginClient(c), nil
}

// TestMain lets this test binary be the plugin: a real process without a second build.
func TestMain(m *testing.M) {
	if kind := os.Getenv("PLUGINSDK_TEST_PLUGIN"); kind != "" {
		servePlugin(kind)
		return
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// start runs this binary as a plugin of the given kind under go-plugin.
func start(t *testing.T, kind string, mtls bool, configure func(*plugin.ClientConfig)) pb.PluginClient {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{"PLUGINSDK_TEST_PLUGIN=" + kind, "TMPDIR=" + t.TempDir()}
	cfg := &plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{ProtocolVersion: pb.ProtocolVersion, MagicCookieKey: pb.MagicCookieKey, MagicCookieValue: pb.MagicCookieValue},
		Plugins:         plugin.PluginSet{pb.PluginName: client{}}, Cmd: cmd, SkipHostEnv: true, AutoMTLS: mtls,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, Logger: hclog.NewNullLogger(),
		GRPCDialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(pb.MaxMessageBytes), grpc.MaxCallSendMsgSize(pb.MaxMessageBytes))},
	}
	if configure != nil {
		configure(cfg)
	}
	c := plugin.NewClient(cfg)
	t.Cleanup(c.Kill)
	rpc, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := rpc.Dispense(pb.PluginName)
	if err != nil {
		t.Fatal(err)
	}
	return raw.(pb.PluginClient)
}

func TestAPluginProcessAnswersOverGoPlugin(t *testing.T) {
	for name, mtls := range map[string]bool{"plain": false, "with mutual TLS": true} {
		t.Run(name, func(t *testing.T) {
			c := start(t, "echo", mtls, nil)
			d, err := c.Describe(t.Context(), &pb.DescribeRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if d.GetName() != "echo" {
				t.Errorf("name = %q", d.GetName())
			}
			configure(t, c, "")
			if got := invoke(t, c, "echo", `{"text":"hi"}`).text(); got != `{"text":"hi"}` {
				t.Errorf("result = %s", got)
			}
		})
	}
}

// collector keeps what is written to it until it has seen everything that it waits for.
type collector struct {
	mu   sync.Mutex
	seen []byte
	want []string
	done chan struct{}
}

func (c *collector) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, b...)
	for len(c.want) > 0 && bytes.Contains(c.seen, []byte(c.want[0])) {
		if c.want = c.want[1:]; len(c.want) == 0 {
			close(c.done)
		}
	}
	return len(b), nil
}

func TestWhatAToolPrintsGoesToStderrAndCannotBlockIt(t *testing.T) {
	const size = 4 * 65536 // four times what a pipe holds
	seen := &collector{want: []string{strings.Repeat("o", size), "from a child"}, done: make(chan struct{})}
	c := start(t, "echo", false, func(cfg *plugin.ClientConfig) { cfg.Stderr = seen })
	configure(t, c, "")
	if got := invoke(t, c, "print", fmt.Sprintf(`{"bytes":%d}`, size)).text(); got != "printed" {
		t.Fatalf("result = %s", got)
	}
	<-seen.done // the test's own deadline is the bound
}

func TestAPanicInAPluginProcessLeavesItRunning(t *testing.T) {
	seen := &collector{want: []string{`"@message":"a tool panicked"`}, done: make(chan struct{})}
	c := start(t, "echo", false, func(cfg *plugin.ClientConfig) { cfg.Stderr = seen })
	configure(t, c, "")
	if o := invoke(t, c, "panic", `{}`); o.err.GetCode() != "plugin_panic" {
		t.Errorf("error = %v", o.err)
	}
	if got := invoke(t, c, "echo", `{"text":"alive"}`).text(); got != `{"text":"alive"}` {
		t.Errorf("result = %s", got)
	}
	<-seen.done
}

func TestABrokenSchemaKeepsThePluginFromStartingAndNamesTheTool(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string][]string{
		"under a host": {pb.MagicCookieKey + "=" + pb.MagicCookieValue},
		"by hand":      {},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(self)
			cmd.Env = append(env, "PLUGINSDK_TEST_PLUGIN=broken")
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != 2 {
				t.Errorf("exit: %v", err)
			}
			for _, want := range []string{"broken", `tool "crooked"`, "input schema does not compile", "/properties/a/type", "strng"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("output %q lacks %q", out, want)
				}
			}
		})
	}
}

func TestAPluginEndsWhenItsLifelineDoes(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	start(t, "echo", false, func(cfg *plugin.ClientConfig) {
		cfg.Cmd.ExtraFiles = []*os.File{r, in} // 3 is the lifeline; 4 reaches its end when the process has gone
		cfg.Cmd.Env = append(cfg.Cmd.Env, pb.LifelineEnv+"=3")
	})
	in.Close()
	w.Close()
	if _, err := io.ReadAll(out); err != nil { // returns at the end of the process; the test's own deadline is the bound
		t.Fatal(err)
	}
}

func TestAPluginThatIsToldToEndFinishesItsWorkBesideTheCalls(t *testing.T) {
	seen := &collector{want: []string{"finished"}, done: make(chan struct{})}
	c := start(t, "running", false, func(cfg *plugin.ClientConfig) { cfg.Stderr = seen })
	configure(t, c, "")
	o := invoke(t, c, "pid", `{}`)
	var pid int
	if _, err := fmt.Sscan(o.text(), &pid); err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-seen.done
}

func TestMessagesMayBeAsLargeAsTheHostSays(t *testing.T) {
	args := fmt.Sprintf(`{"text":"%s"}`, strings.Repeat("x", 5<<20))
	c := start(t, "echo", false, nil)
	configure(t, c, "")
	if got := invoke(t, c, "echo", args).text(); got != args {
		t.Errorf("5 MiB came back as %d bytes", len(got))
	}
	c = start(t, "echo", false, func(cfg *plugin.ClientConfig) {
		cfg.Cmd.Env = append(cfg.Cmd.Env, pb.MaxMessageEnv+"=1048576")
	})
	configure(t, c, "")
	stream, err := c.Invoke(t.Context(), &pb.InvokeRequest{Tool: "echo", Arguments: []byte(args)})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("5 MiB against 1 MiB: %v", err)
	}
}
