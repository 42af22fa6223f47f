package mcpclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
	"go.uber.org/goleak"
)

// roleEnv makes this test binary an MCP server.
const roleEnv = "MCPCLIENT_TEST_ROLE"

func TestMain(m *testing.M) {
	procgroup.ShimMain()
	switch os.Getenv(roleEnv) {
	case "fault":
		runFaultServer()
		os.Exit(0)
	case "task":
		runTaskServer()
		os.Exit(0)
	case "sdk":
		runSDKServer()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// patience is far more than anything here takes on a busy machine.
const patience = 20 * time.Second

// running is a provider under test.
type running struct {
	*mcpclient.Provider
	t       testing.TB
	changed chan struct{}
	logs    *logs
	stop    func()
}

// logs collects a provider's log.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs a provider until the test ends.
func start(t testing.TB, o mcpclient.Options) *running {
	t.Helper()
	r := &running{t: t, changed: make(chan struct{}, 1), logs: &logs{}}
	if o.Name == "" {
		o.Name = "kb"
	}
	if o.StopGrace == 0 {
		o.StopGrace = 200 * time.Millisecond
	}
	o.Logger = slog.New(slog.NewTextHandler(r.logs, nil))
	o.OnChange = func() {
		select {
		case r.changed <- struct{}{}:
		default:
		}
	}
	p, err := mcpclient.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	r.Provider = p
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("log of the provider:\n%s", bounded(r.logs.String(), 2000))
		}
	})
	return r
}

// on is r for a subtest.
func (r *running) on(t testing.TB) *running {
	c := *r
	c.t = t
	return &c
}

func bounded(s string, n int) string { return s[:min(len(s), n)] }

// fault returns options for the misbehaving server, with variables of its environment.
func fault(t testing.TB, env ...string) mcpclient.Options {
	t.Helper()
	return mcpclient.Options{Command: []string{self(t)}, Env: role("fault", env...), Parallel: true}
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func role(name string, env ...string) map[string]string {
	m := map[string]string{roleEnv: name, "GORACE": "atexit_sleep_ms=0"} // a server built with the race detector must die at once
	for _, e := range env {
		k, v, _ := strings.Cut(e, "=")
		m[k] = v
	}
	return m
}

// await waits until what the provider offers is as wanted.
func (r *running) await(what string, ok func(*provider.Offer) bool) *provider.Offer {
	r.t.Helper()
	deadline := time.After(patience)
	for {
		o := r.Offer()
		if ok(o) {
			return o
		}
		select {
		case <-r.changed:
		case <-deadline:
			r.t.Fatalf("waited in vain for %s; status %+v, %d tools\n%s", what, o.Status, len(o.Tools), r.logs)
		}
	}
}

func (r *running) ready() *provider.Offer {
	r.t.Helper()
	return r.await("the server to be ready", func(o *provider.Offer) bool { return o.Status.State == provider.Ready })
}

// find returns the definition of a tool by its own name.
func (r *running) find(own string) *tool.Definition {
	r.t.Helper()
	o := r.Offer()
	for i := range o.Tools {
		if o.Tools[i].OwnName == own {
			return &o.Tools[i]
		}
	}
	r.t.Fatalf("no tool %q is offered", own)
	return nil
}

// request makes a call by agent "desk" in session "s1".
func (r *running) request(own, args string, host *provider.Host) *provider.Request {
	r.t.Helper()
	d := r.find(own)
	return &provider.Request{
		Call:       &tool.Call{ID: "01", Agent: "desk", Session: "s1", Tool: d.Name, Arguments: json.RawMessage(args)},
		Definition: d, Host: host,
	}
}

func (r *running) call(own, args string) (*tool.Result, error) {
	r.t.Helper()
	return r.Invoke(r.t.Context(), r.request(own, args, nil))
}

// text calls a tool that has to succeed and returns its text.
func (r *running) text(own, args string, host *provider.Host) string {
	r.t.Helper()
	result, err := r.Invoke(r.t.Context(), r.request(own, args, host))
	if err != nil {
		r.t.Fatalf("calling %s: %v", own, err)
	}
	return result.Text()
}

// fails calls a tool that has to fail with a code.
func (r *running) fails(ctx context.Context, req *provider.Request, code tool.Code) *tool.Error {
	r.t.Helper()
	result, err := r.Invoke(ctx, req)
	if err == nil {
		r.t.Fatalf("%s succeeded: %s", req.Definition.OwnName, bounded(result.Text(), 200))
	}
	var e *tool.Error
	if !errors.As(err, &e) {
		r.t.Fatalf("%s failed with %T: %v", req.Definition.OwnName, err, err)
	}
	if e.Code != code {
		r.t.Fatalf("%s failed with code %s (%v), want %s", req.Definition.OwnName, e.Code, e, code)
	}
	return e
}

// alive fails the test unless the server answers a call.
func (r *running) alive() {
	r.t.Helper()
	if got := r.text("echo", `{"a":1}`, nil); got != `{"a":1}` {
		r.t.Fatalf("echo answered %q", got)
	}
}

func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func took(t testing.TB, most time.Duration, what string, f func()) {
	t.Helper()
	begin := time.Now()
	f()
	if d := time.Since(begin); d > most {
		t.Errorf("%s took %v, want at most %v", what, d, most)
	}
}

func lines(t testing.TB, file string) int {
	t.Helper()
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(data, []byte("\n"))
}
