// Package chaos runs a daemon whose plugins are killed, stopped and resumed under load.
package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/internal/testbin"
	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/daemon"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/store"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestMain(m *testing.M) {
	procgroup.ShimMain()
	os.Exit(m.Run())
}

const (
	plugins  = 20
	victims  = plugins / 2 // the first ones; nobody touches the others
	callers  = 16
	patience = 30 * time.Second // for what only a broken daemon needs long for
	deadline = 2 * time.Second  // of a call
	// overrun is how long after its deadline a call may still end on a machine that is busy with other things.
	overrun = 5 * time.Second
)

// TestChaos is the soak run with HERMESD_SOAK=1, where the exact bars count; else a short form with wide bounds.
func TestChaos(t *testing.T) {
	soak := os.Getenv("HERMESD_SOAK") != ""
	calm, chaos, every := 700*time.Millisecond, 2500*time.Millisecond, 100*time.Millisecond
	if soak {
		calm, chaos, every = 10*time.Second, 60*time.Second, 250*time.Millisecond
	}
	d := serve(t)
	d.load(t, 200*time.Millisecond, nil) // so that what is made once has been made
	before := d.load(t, calm, nil)
	memory, goroutines := heap(), runtime.NumGoroutine()
	harm := &harm{client: d.client, every: every}
	during := d.load(t, chaos, harm)
	d.recover(t)
	grown := heap() - memory
	t.Logf("%d calls in calm, %d in chaos: %d kills, %d stops, %d quarantines ended; heap %+d KiB; goroutines %d, then %d",
		before.calls(), during.calls(), harm.kills, harm.stops, harm.restarts, grown>>10, goroutines, runtime.NumGoroutine())
	t.Logf("calls to plugins that nobody touched: p50 %v, then %v; p99 %v, then %v", before.untouched(50), during.untouched(50), before.untouched(99), during.untouched(99))
	t.Logf("outcomes of calls to the victims: %v", during.outcomes)

	if harm.kills == 0 || harm.stops == 0 || during.calls() == 0 {
		t.Error("there was no chaos")
	}
	for _, fault := range slices.Concat(before.faults, during.faults) {
		t.Error(fault)
	}
	if grown > 16<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if n := runtime.NumGoroutine(); n > goroutines+goroutines/4 {
		t.Errorf("%d goroutines became %d", goroutines, n)
	}
	bar := 2 * before.untouched(99)
	if !soak {
		bar += time.Second
	}
	if p99 := during.untouched(99); p99 > bar {
		t.Errorf("p99 of calls to untouched plugins went from %v to %v", before.untouched(99), p99)
	}
	d.stop()
	d.auditOutcomes(t, before.calls()+during.calls())
}

// running is a daemon in this process, so that its memory is this process's.
type running struct {
	*daemon.Daemon
	dir    string
	client *admin.Client
	stop   func()
}

func serve(t *testing.T) *running {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "misbehave") // a copy: a binary that another test builds anew meanwhile would not be trusted
	program, err := os.ReadFile(testbin.Build(t, "internal/testbin/misbehave"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, program, 0o700); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "state_dir = %q\nlisten {\n  http = \"off\"\n  admin = %q\n}\n", filepath.Join(dir, "state"), filepath.Join(dir, "a.sock"))
	text.WriteString("audit {\n  sync = \"process\"\n}\nguard {\n  calls_per_minute = 0\n  concurrent_calls = 0\n  same_call_block = 0\n  same_tool_block = 0\n}\n")
	for n := range plugins {
		fmt.Fprintf(&text, "plugin \"p%d\" {\n  path = %q\n  args = [\"all-available\"]\n  prefix = \"p%d\"\n  start = \"eager\"\n  stop_grace = \"1s\"\n}\n", n, binary, n)
	}
	cfg, diags := config.Parse(filepath.Join(dir, "hermesd.hcl"), text.Bytes(), nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	d, err := daemon.New(&daemon.Options{Config: cfg, Version: "chaos"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	r := &running{Daemon: d, dir: dir}
	r.stop = sync.OnceFunc(func() {
		if r.client != nil {
			if err := r.client.Close(); err != nil {
				t.Error(err)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	select {
	case <-d.Ready():
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	if r.client, err = admin.Dial(ctx, filepath.Join(dir, "a.sock")); err != nil {
		t.Fatal(err)
	}
	r.recover(t)
	return r
}

// recover waits until every plugin answers. An operator ends the quarantines.
func (d *running) recover(t *testing.T) {
	t.Helper()
	end := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n := 0; n < plugins; {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		_, err := d.echo(ctx, n, "hello")
		cancel()
		switch {
		case err == nil:
			n++
			continue
		case time.Now().After(end):
			t.Fatalf("p%d does not answer: %v", n, err)
		case tool.CodeOf(err) == tool.ProviderQuarantined || tool.CodeOf(err) == tool.NotAvailable:
			if _, err := d.client.RestartProvider(context.Background(), &adminpb.RestartProviderRequest{Name: fmt.Sprint("p", n)}); err != nil {
				t.Fatal(err)
			}
		}
		<-tick.C
	}
}

// echo calls one plugin and reports whether what came back is what was sent.
func (d *running) echo(ctx context.Context, n int, word string) (ok bool, err error) {
	args, err := json.Marshal(map[string]string{"word": word})
	if err != nil {
		return false, err
	}
	result, err := d.Call(ctx, "", fmt.Sprintf("p%d__echo", n), args)
	if err != nil {
		return false, err
	}
	if !result.IsError {
		return result.Text() == string(args), nil
	}
	var answer struct {
		Code  tool.Code `json:"code"`
		Error string    `json:"error"`
	}
	if err := json.Unmarshal([]byte(result.Text()), &answer); err != nil || answer.Code == "" {
		return false, fmt.Errorf("no typed error: %s", result.Text())
	}
	return false, tool.Errorf(answer.Code, "%s", answer.Error)
}

// tally is what came of a load.
type tally struct {
	mu       sync.Mutex
	calm     []time.Duration   // what calls to untouched plugins took
	outcomes map[tool.Code]int // of calls to victims; "" is a result
	faults   []string
}

func (l *tally) calls() (n int) {
	for _, count := range l.outcomes {
		n += count
	}
	return n + len(l.calm)
}

func (l *tally) untouched(percent int) time.Duration {
	slices.Sort(l.calm)
	if len(l.calm) == 0 {
		return 0
	}
	return l.calm[(len(l.calm)-1)*percent/100]
}

func (l *tally) note(n int, ok bool, err error, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case took > deadline+overrun:
		l.faults = append(l.faults, fmt.Sprintf("a call of p%d took %v", n, took))
	case err == nil && !ok:
		l.faults = append(l.faults, fmt.Sprintf("p%d answered another call's words", n))
	case tool.CodeOf(err) == tool.Internal:
		l.faults = append(l.faults, fmt.Sprintf("p%d: %v", n, err))
	case n >= victims && err != nil:
		l.faults = append(l.faults, fmt.Sprintf("a call of p%d, which nobody touched, failed: %v", n, err))
	}
	if n >= victims {
		l.calm = append(l.calm, took)
	} else {
		l.outcomes[tool.CodeOf(err)]++
	}
}

// load calls random plugins from many callers for a time, with or without harm being done meanwhile.
func (d *running) load(t *testing.T, long time.Duration, h *harm) *tally {
	t.Helper()
	l := &tally{outcomes: map[tool.Code]int{}}
	over := make(chan struct{})
	time.AfterFunc(long, func() { close(over) })
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				default:
				}
				n := rand.IntN(plugins)
				ctx, cancel := context.WithTimeout(context.Background(), deadline)
				begin := time.Now()
				ok, err := d.echo(ctx, n, fmt.Sprintf("%d-%d", c, i))
				l.note(n, ok, err, time.Since(begin))
				cancel()
			}
		})
	}
	if h != nil {
		all.Go(func() {
			if err := h.run(over); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return l
}

// harm kills, stops and resumes random victims.
type harm struct {
	client                 *admin.Client
	every                  time.Duration
	kills, stops, restarts int
}

func (h *harm) run(over <-chan struct{}) error {
	stopped := map[int]time.Time{} // process to when it is resumed
	defer func() {
		for pid := range stopped {
			signal(pid, syscall.SIGCONT)
		}
	}()
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return nil
		case <-tick.C:
		}
		for pid, until := range maps.Clone(stopped) {
			if time.Now().After(until) {
				signal(pid, syscall.SIGCONT)
				delete(stopped, pid)
			}
		}
		list, err := h.client.ListProviders(context.Background(), &adminpb.ListProvidersRequest{})
		if err != nil {
			return err
		}
		victim := list.GetProviders()[rand.IntN(victims)]
		pid := int(victim.GetPid())
		switch {
		case victim.GetState() == "quarantined":
			if _, err := h.client.RestartProvider(context.Background(), &adminpb.RestartProviderRequest{Name: victim.GetName()}); err != nil {
				return err
			}
			h.restarts++
		case pid == 0:
		case rand.IntN(2) == 0:
			signal(pid, syscall.SIGKILL)
			h.kills++
		default:
			signal(pid, syscall.SIGSTOP)
			stopped[pid] = time.Now().Add(time.Duration(50+rand.IntN(500)) * time.Millisecond)
			h.stops++
		}
	}
}

// signal may be late: the process can have ended since it was looked up.
func signal(pid int, sig syscall.Signal) {
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		panic(err)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers freed
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// auditOutcomes reads the audit log of a daemon that has ended: every call that was started has ended exactly once.
func (d *running) auditOutcomes(t *testing.T, least int) {
	t.Helper()
	s, err := store.Open(filepath.Join(d.dir, "state"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // only read
	w, err := s.Writer(false)
	if err != nil {
		t.Fatal(err)
	}
	key, err := audit.LoadKey(filepath.Join(d.dir, "state", "audit.key"))
	if err != nil {
		t.Fatal(err)
	}
	journal, err := w.Journal("audit")
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(t.Context(), w, journal, &audit.Options{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // only read
	var records []audit.Entry
	err = log.Export(t.Context(), nil, func(page []audit.Entry) error {
		records = append(records, page...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	started, ended := map[string]int{}, map[string]int{}
	for i := range records {
		e := &records[i]
		switch e.Kind {
		case tool.RecordStarted:
			started[e.CallID]++
		case tool.RecordFinished:
			ended[e.CallID]++
		}
	}
	if len(started) < least/2 {
		t.Errorf("%d calls are on record, %d were made", len(started), least)
	}
	for id, n := range started {
		if n != 1 || ended[id] != 1 {
			t.Errorf("call %s was started %d times and ended %d times", id, n, ended[id])
		}
	}
}
