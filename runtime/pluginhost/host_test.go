package pluginhost_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/internal/testbin"
	"github.com/hermesd/hermesd/internal/testenv"
	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestMain(m *testing.M) {
	procgroup.ShimMain()
	if os.Getenv(daemonEnv) != "" {
		playDaemon()
	}
	// These tests wait far more than they compute.
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

const misbehave = "internal/testbin/misbehave"

// markEnv names the file by which a test finds a plugin's grandchild, or that a tool writes.
const markEnv = "MISBEHAVE_MARK"

// maxResult is the limit of results in these tests, in bytes.
const maxResult = 8 << 20

// strict is a bar as it stands where the run has the machine to itself. Elsewhere the machine may be busy with other tests,
// and only what hangs is found.
func strict(bar time.Duration) time.Duration {
	if !testenv.Quiet() {
		bar += 2 * time.Second
	}
	return bar * slowness
}

// within fails unless something that takes a time stays within a bar once in three attempts.
func within(t *testing.T, bar time.Duration, attempt func() time.Duration) {
	t.Helper()
	var took time.Duration
	bound := strict(bar)
	for range 3 {
		if took = attempt(); took <= bound {
			return
		}
	}
	t.Errorf("took %v, want at most %v", took, bound)
}

// host is a running provider under test.
type host struct {
	*pluginhost.Provider
	t       *testing.T
	log     *logBuffer
	changed chan struct{} // capacity 1
	stop    func()
}

// socketFolder is where plugins' sockets are, with a path that is short enough. Nothing may be left in it when the test ends.
func socketFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "host")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		for _, e := range left {
			if err == nil && strings.HasPrefix(e.Name(), "plugin-dir") {
				t.Errorf("the socket folder %s was left behind", e.Name())
			}
		}
		if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// options are for a plugin that misbehaves in the given modes.
func options(t *testing.T, modes ...string) *pluginhost.Options {
	t.Helper()
	dir, off := t.TempDir(), false
	return &pluginhost.Options{
		MTLS: &off, // half of what a start costs, and nothing to most tests
		Name: "mis", Path: testbin.Build(t, misbehave), Args: modes, StateDir: dir + "/state", RuntimeDir: socketFolder(t), CacheDir: dir + "/cache",
		KeysDir:      t.TempDir() + "/keys", // not beside the mark, whose folder the plugin may write to
		StartTimeout: 10 * time.Second, StopGrace: 500 * time.Millisecond, Env: map[string]string{markEnv: dir + "/mark"},
	}
}

// start runs a provider until the test ends.
func start(t *testing.T, opts *pluginhost.Options) *host {
	t.Helper()
	h := &host{t: t, log: &logBuffer{}, changed: make(chan struct{}, 1)}
	opts.Logger = slog.New(slog.NewJSONHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	opts.OnChange = func() {
		select {
		case h.changed <- struct{}{}:
		default:
		}
	}
	p, err := pluginhost.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	h.Provider = p
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(h.stop)
	return h
}

// await waits until the offer fulfils a condition.
func (h *host) await(what string, cond func(*provider.Offer) bool) *provider.Offer {
	h.t.Helper()
	deadline := time.After(30 * slowness * time.Second)
	for {
		if offer := h.Offer(); cond(offer) {
			return offer
		}
		select {
		case <-h.changed:
		case <-deadline:
			h.t.Fatalf("waited in vain for %s; status %+v\n%s", what, h.Offer().Status, h.log)
		}
	}
}

func (h *host) ready() *provider.Offer {
	h.t.Helper()
	return h.await("ready", func(o *provider.Offer) bool { return o.Status.State == provider.Ready && len(o.Tools) > 0 })
}

// request is a call of one of the plugin's tools.
func (h *host) request(own, args string) *provider.Request {
	h.t.Helper()
	for _, d := range h.Offer().Tools {
		if d.OwnName == own {
			return &provider.Request{Definition: &d, Call: &tool.Call{
				ID: "call-1", Agent: "agent-1", Session: "session-1", Tool: d.Name, Arguments: json.RawMessage(args),
			}}
		}
	}
	h.t.Fatalf("no tool %q", own)
	return nil
}

// invoke calls a tool with a generous deadline.
func (h *host) invoke(own, args string) (*tool.Result, error) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 20*time.Second)
	defer cancel()
	req := h.request(own, args)
	req.MaxResultBytes = maxResult
	return h.Invoke(ctx, req)
}

func (h *host) text(own, args string) string {
	h.t.Helper()
	result, err := h.invoke(own, args)
	if err != nil {
		h.t.Fatalf("%s: %v\n%s", own, err, h.log)
	}
	return result.Text()
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// lines returns the entries whose message contains a text.
func (l *logBuffer) lines(message string) (entries []map[string]any) {
	for line := range strings.Lines(l.String()) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) == nil && strings.Contains(fmt.Sprint(entry["msg"]), message) {
			entries = append(entries, entry)
		}
	}
	return entries
}

func eventually(t *testing.T, bound time.Duration, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	bound = strict(bound)
	for end := time.Now().Add(bound); !cond(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", bound, what)
		}
	}
}

// processes are the ids of all processes whose command line contains a text, whatever namespace they live in.
func processes(text string) (pids []int) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.Contains(line, []byte(text)) {
			pids = append(pids, pid)
		}
	}
	return pids
}
