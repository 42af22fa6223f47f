package mcpclient_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// What a server asks costs the daemon a bounded amount, whether it takes the answers or not.
func TestAServerThatAsksWithoutEnd(t *testing.T) {
	for _, own := range []string{"pester", "pesterdeaf"} {
		t.Run(own, func(t *testing.T) {
			r := start(t, fault(t))
			r.ready()
			beside(t, func() {
				before := runtime.NumGoroutine()
				memoryBefore := memory()
				host := &provider.Host{} // nobody can be asked
				ctx, cancel := within(t.Context(), patience)
				defer cancel()
				result, err := r.Invoke(ctx, r.request(own, "{}", host))
				if err != nil || result.Text() != "done" {
					t.Errorf("the call itself: %v", err)
				}
				if n := runtime.NumGoroutine() - before; n > 200 {
					t.Errorf("%d goroutines more", n)
				}
				if grown := memory() - memoryBefore; grown > 32<<20 {
					t.Errorf("%d MiB more are in use", grown>>20)
				}
				if own == "pester" {
					r.alive()
				}
			})
		})
	}
}

// A server that comes back may have other tools than before; what it had is offered meanwhile.
func TestAServerThatComesBackWithOtherTools(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tools.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"name":"echo","inputSchema":{"type":"object"}},{"name":"old","inputSchema":{"type":"object"}}]`)
	options := fault(t, "TOOLS=@"+file)
	options.Isolation = "none" // it reads the file
	r := start(t, options)
	r.ready()
	r.alive()
	write(`[{"name":"echo","inputSchema":{"type":"object"}},{"name":"new","inputSchema":{"type":"object"}}]`)
	if err := syscall.Kill(r.Offer().Status.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	has := func(o *provider.Offer, own string) bool {
		return slices.ContainsFunc(o.Tools, func(d tool.Definition) bool { return d.OwnName == own })
	}
	o := r.await("the other tools", func(o *provider.Offer) bool {
		if len(o.Tools) != 2 {
			t.Errorf("%d tools are offered meanwhile", len(o.Tools))
		}
		return has(o, "new")
	})
	if has(o, "old") {
		t.Error("a tool that the server no longer has is offered")
	}
	r.alive()
}
