package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/hermesd/hermesd/internal/testbin"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/pluginhost/store"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// BenchmarkFirstCall is what the first call of a plugin costs that is not running: its start, the connection and the call.
// Under hermesd its tools are known from before. Bare go-plugin does the least that it can, with certificates and without.
func BenchmarkFirstCall(b *testing.B) {
	hello := hello(b)
	shim(b)
	for _, isolation := range []string{"none", "default", "strict"} {
		b.Run("hermesd, isolation "+isolation, func(b *testing.B) {
			o := &pluginhost.Options{Name: "hello", Path: hello, Lazy: true, StateDir: b.TempDir(), CacheDir: b.TempDir(), Isolation: isolation}
			once(b, o) // so that the tools are known
			var took []time.Duration
			for b.Loop() {
				took = append(took, once(b, o))
			}
			times(b, took)
		})
	}
	for name, mtls := range map[string]bool{"bare go-plugin, AutoMTLS": true, "bare go-plugin, plain": false} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				took = append(took, bare(b, hello, mtls))
			}
			times(b, took)
		})
	}
}

// shim puts the shim beside this test's binary, where the daemon finds it beside its own.
func shim(b *testing.B) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	raw, err := os.ReadFile(testbin.Build(b, "cmd/hermesd-shim"))
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(self), "hermesd-shim"), raw, 0o700); err != nil {
		b.Fatal(err)
	}
}

// once runs a provider for one call and returns how long the call took.
func once(b *testing.B, o *pluginhost.Options) time.Duration {
	b.Helper()
	told := make(chan struct{}, 1)
	o.OnChange = func() {
		select {
		case told <- struct{}{}:
		default:
		}
	}
	p, err := pluginhost.New(o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for len(p.Offer().Tools) == 0 { // as in a daemon that has been up for a while
		<-told
	}
	begin := time.Now()
	if _, err := p.Invoke(ctx, &provider.Request{
		Definition: &tool.Definition{Name: "greet", OwnName: "greet"},
		Call:       &tool.Call{ID: "1", Agent: "a", Session: "s", Tool: "greet", Arguments: json.RawMessage(`{"name":"you"}`)},
	}); err != nil {
		b.Fatal(err)
	}
	took := time.Since(begin)
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
	return took
}

type bareClient struct{ plugin.NetRPCUnsupportedPlugin }

func (bareClient) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (bareClient) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return pb.NewPluginClient(conn), nil
}

// bare starts the plugin with the library alone and makes the same call.
func bare(b *testing.B, path string, mtls bool) time.Duration {
	b.Helper()
	begin := time.Now()
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{ProtocolVersion: pb.ProtocolVersion, MagicCookieKey: pb.MagicCookieKey, MagicCookieValue: pb.MagicCookieValue},
		Plugins:          plugin.PluginSet{pb.PluginName: bareClient{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd:              exec.Command(path), AutoMTLS: mtls, Logger: hclog.NewNullLogger(),
	})
	defer client.Kill()
	conn, err := client.Client()
	if err != nil {
		b.Fatal(err)
	}
	raw, err := conn.Dispense(pb.PluginName)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	rpc := raw.(pb.PluginClient)
	if _, err := rpc.Configure(ctx, &pb.ConfigureRequest{Config: []byte("{}"), Provider: "hello", StateDir: b.TempDir()}); err != nil {
		b.Fatal(err)
	}
	stream, err := rpc.Invoke(ctx, &pb.InvokeRequest{Tool: "greet", Arguments: []byte(`{"name":"you"}`), CallId: "1"})
	if err != nil {
		b.Fatal(err)
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			b.Fatal(err)
		}
		if event.GetError() != nil {
			b.Fatal(event.GetError().GetMessage())
		}
		if event.GetResult() != nil {
			return time.Since(begin)
		}
	}
}

// BenchmarkReady is how long the daemon's process needs until it serves, with twenty installed plugins whose tools it knows
// from before. It fails if a plugin's process was started.
func BenchmarkReady(b *testing.B) {
	dir := b.TempDir()
	state := filepath.Join(dir, "state")
	var blocks strings.Builder
	installed := store.OpenInstalled(filepath.Join(state, "store"))
	for n := range 20 {
		name := fmt.Sprintf("p%02d", n)
		if _, err := installed.Install(hello(b), store.InstallOptions{Name: name}); err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(&blocks, "plugin %q {\n  prefix = true\n}\n", name)
	}
	warm := daemonProcess(b, dir, blocks.String())
	waitFor(b, func() error {
		files, err := filepath.Glob(filepath.Join(state, "cache", "plugin-*.json"))
		if err == nil && len(files) < 20 {
			err = fmt.Errorf("%d plugins told their tools", len(files))
		}
		return err
	})
	warm.end(b)
	var took []time.Duration
	for b.Loop() {
		p := daemonProcess(b, dir, blocks.String())
		took = append(took, p.took)
		if children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.Process.Pid, p.Process.Pid)); err == nil && len(children) > 0 {
			b.Errorf("processes were started: %s", children)
		}
		p.end(b)
	}
	times(b, took)
}
