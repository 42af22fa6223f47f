package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/pluginsdk"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/conformance"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/wire"
	"github.com/hermesd/hermesd/runtime/pluginhost"
)

// Conformance checks that a plugin keeps the contract, each check as a subtest. newPlugin makes a fresh plugin; it is
// called for every instance that the checks open. The checks call tools for real only if those are read-only and give
// examples, or if opts.Calls names the call.
func Conformance(t *testing.T, newPlugin func() *pluginsdk.Plugin, opts *conformance.Options) {
	t.Helper()
	o := conformance.Options{}
	if opts != nil {
		o = *opts
	}
	report(t, wire.InProcess{New: func() (pb.PluginServer, error) { return pluginsdk.NewServer(newPlugin()) }}, &o)
	t.Run("contained panic", func(t *testing.T) { panicIsContained(t, newPlugin(), &o) })
}

// ConformanceBinary is [Conformance] for a built program in any language. It runs under hermesd's own host, too.
func ConformanceBinary(t *testing.T, path string, opts *conformance.Options) {
	t.Helper()
	o := conformance.Options{}
	if opts != nil {
		o = *opts
	}
	target := wire.Program{Path: path}
	if o.Hosted == nil {
		o.Hosted = &pluginhost.Options{Path: path, Isolation: pluginhost.IsolationNone}
	} else {
		target.Args, target.Env = o.Hosted.Args, o.Hosted.Env
	}
	report(t, target, &o)
}

func report(t *testing.T, target wire.Target, opts *conformance.Options) {
	t.Helper()
	r, err := conformance.Check(t.Context(), target, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		t.Run(f.Check, func(t *testing.T) {
			switch f.Status {
			case conformance.Fail:
				t.Errorf("%s:\n%s", f.About, strings.Join(f.Faults, "\n"))
			case conformance.Skip:
				t.Skip(f.Note)
			}
		})
	}
}

// panicIsContained adds a tool that panics to the plugin: the next call must find it alive.
func panicIsContained(t *testing.T, p *pluginsdk.Plugin, opts *conformance.Options) {
	const name = "plugintest_panic"
	changed := *p
	changed.Tools = append(changed.Tools[:len(changed.Tools):len(changed.Tools)], pluginsdk.NewRawTool(name, "Panics.",
		json.RawMessage(`{"type":"object"}`), func(context.Context, json.RawMessage) (*pluginsdk.Result, error) {
			panic(errors.New("plugintest: this panic must be contained"))
		}, nil))
	o := &Options{}
	if opts.Config != nil {
		o.Config = opts.Config
	}
	s := Start(t, &changed, o)
	for range 2 {
		if got := s.Call(t, name, nil).Code(); got != "plugin_panic" {
			t.Fatalf("a tool that panics ends with the code %q, want plugin_panic", got)
		}
	}
}
