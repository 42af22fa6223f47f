package pluginhost_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/hermesd/hermesd/internal/testbin"
	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// BenchmarkFirstCall measures what the first call of a lazy plugin costs: the start and the call.
func BenchmarkFirstCall(b *testing.B) {
	on, off := true, false
	for name, o := range map[string]pluginhost.Options{
		"default":              {MTLS: &on},
		"without certificates": {MTLS: &off},
		"without isolation":    {MTLS: &on, Isolation: pluginhost.IsolationNone},
		"without both":         {MTLS: &off, Isolation: pluginhost.IsolationNone},
	} {
		b.Run(name, func(b *testing.B) {
			o.CacheDir, o.StateDir = b.TempDir(), b.TempDir()
			o.Name, o.Path, o.Lazy = "mis", testbin.Build(b, misbehave), true
			for b.Loop() {
				run(b, &o, func(p *pluginhost.Provider) { echo(b, p) })
			}
		})
	}
}

// BenchmarkCall measures a small call of a running plugin.
func BenchmarkCall(b *testing.B) {
	o := &pluginhost.Options{Name: "mis", Path: testbin.Build(b, misbehave), StateDir: b.TempDir(), Lazy: true}
	run(b, o, func(p *pluginhost.Provider) {
		echo(b, p)
		for b.Loop() {
			echo(b, p)
		}
	})
}

func run(b *testing.B, o *pluginhost.Options, work func(*pluginhost.Provider)) {
	p, err := pluginhost.New(o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	work(p)
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

func echo(b *testing.B, p *pluginhost.Provider) {
	b.Helper()
	req := &provider.Request{Definition: &tool.Definition{Name: "echo", OwnName: "echo"}, Call: &tool.Call{Arguments: json.RawMessage(`{}`)}}
	if _, err := p.Invoke(b.Context(), req); err != nil {
		b.Fatal(err)
	}
}
