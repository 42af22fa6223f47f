package pluginhost_test

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/provider"
)

// slack is what a stop may take beyond its grace.
const slack = 50 * time.Millisecond

// stopAfter starts a plugin, calls a tool unless it is "", and returns how long the stop took. Nothing may be left.
func stopAfter(t *testing.T, o *pluginhost.Options, call string) time.Duration {
	t.Helper()
	mark := t.TempDir()
	o.Env[markEnv] = mark
	h := start(t, o)
	h.ready()
	if call != "" {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := h.Invoke(ctx, h.request(call, `{}`)); err != nil {
			t.Log(err)
		}
	}
	begin := time.Now()
	h.stop()
	took := time.Since(begin)
	if h.Offer().Status.State != provider.Stopped {
		t.Errorf("state %s", h.Offer().Status.State)
	}
	if o.Isolation != pluginhost.IsolationNone {
		eventually(t, 200*time.Millisecond, "nothing is left", func() bool { return len(processes(mark)) == 0 })
	}
	for _, pid := range processes(mark) { // what left the group without a shim to catch it
		if err := kill(pid); err != nil {
			t.Log(err)
		}
	}
	return took
}

func TestStopIsBoundedHoweverThePluginMisbehaves(t *testing.T) {
	const grace = 400 * time.Millisecond
	tests := map[string]struct {
		modes []string
		call  string        // a tool that is called first; its outcome does not matter
		most  time.Duration // 0: grace
		// isolated cases are run without isolation only in a soak run.
		isolated bool
	}{
		"a plugin that behaves":                    {most: 200 * time.Millisecond},
		"deaf to signals":                          {modes: []string{"deaf"}},
		"hanging in Drain":                         {modes: []string{"hang-Drain"}, isolated: true},
		"hanging in Drain and deaf":                {modes: []string{"hang-Drain", "deaf"}},
		"hanging in Watch":                         {modes: []string{"hang-Watch"}, isolated: true},
		"hanging in Health":                        {modes: []string{"hang-Health"}, isolated: true},
		"crashing in Drain":                        {modes: []string{"crash-Drain"}, isolated: true},
		"stopped":                                  {call: "stop"},
		"a call that ignores its cancel":           {call: "ignore-cancel", isolated: true},
		"a grandchild on the pipes":                {modes: []string{"grandchild"}},
		"a grandchild in its own session":          {modes: []string{"setsid-grandchild"}},
		"a grandchild from a call":                 {call: "setsid"},
		"flooding stdout and stderr":               {call: "flood"},
		"flooding stderr from the start":           {modes: []string{"eat-stderr"}, isolated: true},
		"a line without an end":                    {call: "long-line", isolated: true},
		"changing its tools all the time":          {modes: []string{"changing-list"}, isolated: true},
		"everything at once":                       {modes: []string{"hang-Drain", "hang-Watch", "deaf", "setsid-grandchild", "eat-stderr"}, call: "stop"},
		"ending Watch at once":                     {modes: []string{"short-watch"}, isolated: true},
		"hanging in the answer to a host request":  {modes: []string{"hang-Answer"}, call: "ask", isolated: true},
		"hanging when asked for what is available": {modes: []string{"hang-CheckAvailability"}, isolated: true},
	}
	for _, isolation := range []string{pluginhost.IsolationNone, pluginhost.IsolationDefault} {
		t.Run(isolation, func(t *testing.T) {
			for name, tt := range tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					if isolation == pluginhost.IsolationNone && tt.isolated && os.Getenv("HERMESD_SOAK") == "" {
						t.Skip("isolation makes no difference to it; set HERMESD_SOAK=1 to run it without")
					}
					within(t, cmp.Or(tt.most, grace)+slack, func() time.Duration {
						o := options(t, tt.modes...)
						o.StopGrace, o.Isolation = grace, isolation
						return stopAfter(t, o, tt.call)
					})
				})
			}
		})
	}
}

// TestStartAndStopLeakNothing runs 1,000 cycles of each kind with HERMESD_SOAK set.
func TestStartAndStopLeakNothing(t *testing.T) {
	cycles := 5
	if os.Getenv("HERMESD_SOAK") != "" {
		cycles = 1000
	}
	for name, how := range map[string]struct {
		isolation string
		crash     bool
	}{
		"stopped":                  {pluginhost.IsolationDefault, false},
		"stopped, not isolated":    {pluginhost.IsolationNone, false},
		"crashed and then stopped": {pluginhost.IsolationDefault, true},
	} {
		t.Run(name, func(t *testing.T) {
			var files, goroutines int
			for cycle := range cycles {
				o := options(t)
				o.RuntimeDir, o.Isolation, o.MTLS = t.TempDir(), how.isolation, nil
				h := start(t, o)
				pid := h.ready().Status.PID
				if how.crash {
					if err := kill(pid); err != nil {
						t.Fatal(err)
					}
					h.await("another process", func(o *provider.Offer) bool { return o.Status.PID != pid && o.Status.State == provider.Ready })
				}
				h.text("echo", `{}`)
				h.stop()
				if left, err := os.ReadDir(o.RuntimeDir); err != nil || len(left) != 0 {
					t.Fatalf("left in the runtime folder: %v, %v", left, err)
				}
				if cycle == 1 { // the first may open what the process keeps
					files, goroutines = openFiles(t), runtime.NumGoroutine()
				}
			}
			eventually(t, time.Second, "goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
			if now := openFiles(t); now > files {
				t.Errorf("%d open files after %d cycles, %d after 2", now, cycles, files)
			}
		})
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
