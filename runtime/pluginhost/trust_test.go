package pluginhost_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/internal/testbin"
	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/pluginhost/store"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// locked gives a plugin a keeper of the lock file in dir, which is kept while the test runs. The keeper tells the provider
// what the operator decided.
func locked(t *testing.T, dir string, o *pluginhost.Options, shipped bool) (start func() *host) {
	t.Helper()
	return func() *host {
		lock := store.OpenLock(dir, nil)
		decided := make(chan struct{}, 8)
		k := lock.For(store.KeeperOptions{Name: o.Name, Kind: "plugin", Shipped: shipped, OnChange: func() { decided <- struct{}{} }})
		o.Trust = k
		h := startTrusted(t, o)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- lock.Run(ctx) }()
		go func() {
			for range decided {
				h.Reconsider()
			}
		}()
		stop := h.stop
		h.stop = func() {
			stop()
			cancel()
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		t.Cleanup(func() { close(decided) })
		return h
	}
}

func startTrusted(t *testing.T, o *pluginhost.Options) *host {
	t.Helper()
	own := *o
	return start(t, &own)
}

func TestAChangedPluginIsRefusedUntilTheOperatorAcceptsIt(t *testing.T) {
	content, err := os.ReadFile(testbin.Build(t, misbehave))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := options(t)
	o.Path = filepath.Join(t.TempDir(), "plugin")
	write := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(o.Path+".new", content, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(o.Path+".new", o.Path); err != nil {
			t.Fatal(err)
		}
	}
	write(content)
	run := locked(t, dir, o, false)
	first := run()
	first.ready()
	first.text("echo", `{}`)
	first.stop()

	// Another binary: it does not start, and starts as soon as the operator says so.
	write(append(content, 0))
	second := run()
	offer := second.await("the refusal", func(o *provider.Offer) bool { return o.Status.State == provider.Quarantined })
	if !strings.Contains(offer.Status.Reason, "hermesd plugin lock mis") {
		t.Errorf("reason %q", offer.Status.Reason)
	}
	if !slices.ContainsFunc(offer.Tools, func(d tool.Definition) bool { return d.Name == "echo" }) {
		t.Error("its tools are forgotten, so that a call would be told that there are none")
	}
	accept(t, dir, o.Name)
	second.ready()
	second.text("echo", `{}`)
	second.stop()

	// Another definition: that tool is refused, with what is wrong with it; the others can be called.
	o.Args = []string{"rug-pull"}
	third := run()
	offer = third.ready()
	if len(offer.Refused) != 1 || !strings.Contains(offer.Refused["echo"], "hermesd plugin lock --diff mis") {
		t.Errorf("refused %v", offer.Refused)
	}
	changes := accept(t, dir, o.Name)
	if len(changes) != 1 || len(changes[0].Differences) != 1 || changes[0].Differences[0].Field != "description" {
		t.Fatalf("changes %+v", changes)
	}
	var kinds []string
	for _, f := range changes[0].Findings {
		kinds = append(kinds, f.Kind)
	}
	if !slices.Contains(kinds, store.FindInvisible) || !slices.Contains(kinds, store.FindInstruction) {
		t.Errorf("findings %+v", changes[0].Findings)
	}
	third.await("the tool", func(o *provider.Offer) bool { return len(o.Refused) == 0 })
	third.text("echo", `{}`)
	third.stop()
}

// accept waits until something waits for the operator, and accepts it.
func accept(t *testing.T, dir, name string) (changes []store.Change) {
	t.Helper()
	eventually(t, slowness*5e9, "something waits to be accepted", func() bool {
		var err error
		if changes, err = store.Accept(dir, name); err != nil {
			t.Fatal(err)
		}
		return len(changes) > 0
	})
	return changes
}

func TestAnInstalledPluginIsStartedFromTheStore(t *testing.T) {
	installed := store.OpenInstalled(t.TempDir())
	o := options(t)
	p, err := installed.Install(o.Path, store.InstallOptions{Name: "mis"})
	if err != nil {
		t.Fatal(err)
	}
	o.Path, o.Isolation = "", pluginhost.IsolationDefault
	o.Sandbox.Private = []string{filepath.Dir(o.StateDir)}
	o.Installed = func() (string, string, error) {
		path, r, err := installed.Find("mis")
		if err != nil {
			return "", "", err
		}
		return path, r.SHA256, nil
	}
	h := start(t, o)
	h.ready()
	h.text("echo", `{}`)

	// What was changed in the store does not start.
	path, _, err := installed.Find("mis")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	h.Restart()
	offer := h.await("the refusal", func(o *provider.Offer) bool { return o.Status.State == provider.Quarantined })
	if !strings.Contains(offer.Status.Reason, p.Release().SHA256+" was installed") {
		t.Errorf("reason %q", offer.Status.Reason)
	}
}
