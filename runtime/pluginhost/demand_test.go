package pluginhost_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providerlog"
	"github.com/hermesd/hermesd/runtime/tool"
)

// warmCache runs a plugin once, so that its tools are known.
func warmCache(t *testing.T, o *pluginhost.Options) {
	t.Helper()
	first := start(t, o)
	first.ready()
	first.stop()
}

func TestAWarmedPluginStartsWithoutACallAndStopsWhenIdle(t *testing.T) {
	t.Parallel()
	o := options(t, "all-available")
	o.Lazy, o.IdleTimeout = true, 300*time.Millisecond
	warmCache(t, o)
	h := start(t, o)
	h.await("the cached tools", func(o *provider.Offer) bool { return o.Status.State == provider.Installed && len(o.Tools) > 0 })
	h.Warm()
	h.Warm()
	offer := h.ready()
	if !offer.Status.Healthy() || offer.Status.PID == 0 {
		t.Errorf("status %+v", offer.Status)
	}
	h.await("the idle stop", func(o *provider.Offer) bool { return o.Status.State == provider.Installed && o.Status.PID == 0 })
}

func TestAnEagerPluginRunsFromTheStartWhateverItsCacheKnows(t *testing.T) {
	t.Parallel()
	o := options(t, "all-available")
	warmCache(t, o)
	h := start(t, o)
	if status := h.ready().Status; status.PID == 0 {
		t.Errorf("status %+v", status)
	}
}

func TestAPluginThatEatsMemoryFailsAlone(t *testing.T) {
	t.Parallel()
	if slowness > 1 {
		t.Skip("the race detector takes more memory than the limit, even for what confines the plugin")
	}
	o := options(t)
	o.Sandbox.Memory = 256 << 20
	h := start(t, o)
	h.ready()
	limited := false
	for _, l := range h.Inspect().Layers {
		limited = limited || l.Name == "memory limit" && l.Applied
	}
	if !limited {
		t.Skip("this machine has no memory limit for plugins")
	}
	if got := h.text("eat-memory", `{"mib":8}`); got != "ate 8 MiB" {
		t.Errorf("within its limit: %q", got)
	}
	_, err := h.invoke("eat-memory", `{"mib":2048}`)
	if tool.CodeOf(err) != tool.OutcomeUnknown {
		t.Errorf("beyond its limit: %v", err)
	}
	if got := h.text("echo", `{"a":1}`); got != `{"a":1}` {
		t.Errorf("the next call: %q", got)
	}
	said := ""
	for _, l := range h.Log().Tail(1000) {
		if l.From == providerlog.FromStderr {
			said += l.Text + "\n"
		}
	}
	if !strings.Contains(said, "out of memory") {
		t.Errorf("its log does not say why:\n%.2000s", said)
	}
}

func TestALogOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	h := start(t, options(t))
	pid := h.ready().Status.PID
	h.text("stderr", `{}`)
	if err := kill(pid); err != nil {
		t.Fatal(err)
	}
	h.await("another process", func(o *provider.Offer) bool { return o.Status.State == provider.Ready && o.Status.PID != pid })
	h.text("stderr", `{}`)
	eventually(t, time.Second, "both processes' words and the host's between them", func() bool {
		var order []string
		for _, l := range h.Log().Tail(100) {
			switch {
			case l.From == providerlog.FromStderr && l.Text == "hot":
				order = append(order, l.Level.String()+" hot")
			case l.From == providerlog.FromHost && l.Text == "provider failed":
				order = append(order, "died")
			}
		}
		return strings.Join(order, ", ") == "WARN hot, died, WARN hot"
	})
}
