package catalog_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestOnlyAChangeOfToolsBeginsAGeneration(t *testing.T) {
	f, g := newFake(tool.SourcePlugin, "p", "x", "y"), newFake(tool.SourceMCP, "m", "z")
	var told []uint64
	c := catalog.New(&catalog.Options{OnChange: func(s *catalog.Snapshot) { told = append(told, s.Generation) }})
	c.SetProviders([]provider.Provider{f, g})
	for name, step := range map[string]struct {
		change func()
		begins bool
	}{
		"nothing":                       {func() {}, false},
		"it goes down":                  {func() { f.status(provider.Backoff, "exit status 1") }, false},
		"it starts":                     {func() { f.status(provider.Starting, "") }, false},
		"it stops":                      {func() { f.status(provider.Stopped, "") }, false},
		"it lists the same tools again": {func() { f.publish(func(o *provider.Offer) { o.Tools = f.tools("x", "y") }) }, false},
		"a tool comes":                  {func() { f.publish(func(o *provider.Offer) { o.Tools = f.tools("x", "y", "w") }) }, true},
		"a tool goes":                   {func() { f.publish(func(o *provider.Offer) { o.Tools = f.tools("x") }) }, true},
		"a precondition fails":          {func() { f.publish(func(o *provider.Offer) { o.Unmet = map[string]string{"x": "set X"} }) }, true},
		"a tool is quarantined":         {func() { f.publish(func(o *provider.Offer) { o.Refused = map[string]string{"x": "changed"} }) }, true},
		"the operator switches it off":  {func() { f.status(provider.Disabled, "") }, true},
		"it is quarantined after too many failures": {func() { f.status(provider.Quarantined, "") }, true},
		"a description changes": {func() {
			f.publish(func(o *provider.Offer) { o.Tools = f.tools("x", "y"); o.Tools[0].Description = "Else." })
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f.publish(func(o *provider.Offer) { *o = provider.Offer{Tools: f.tools("x", "y")} })
			c.Refresh()
			told = nil
			before := c.Snapshot()
			step.change()
			c.Refresh()
			after := c.Snapshot()
			if begins := after.Generation != before.Generation; begins != step.begins || len(told) != int(after.Generation-before.Generation) {
				t.Errorf("generation %d -> %d, told %v", before.Generation, after.Generation, told)
			}
		})
	}
}

func TestADigestIsOfTheToolsAlone(t *testing.T) {
	digest := func(change func(*fake)) string {
		f := newFake(tool.SourcePlugin, "p", "x", "y")
		change(f)
		return catalogOf(f, newFake(tool.SourceMCP, "m", "z")).Snapshot().Digest
	}
	same := digest(func(*fake) {})
	if digest(func(f *fake) { f.status(provider.Stopped, "") }) != same {
		t.Error("a status changed the digest")
	}
	for name, change := range map[string]func(*tool.Definition){
		"description": func(d *tool.Definition) { d.Description = "Else." },
		"schema":      func(d *tool.Definition) { d.InputSchema = json.RawMessage(`{"type":"object","required":["a"]}`) },
		"keywords":    func(d *tool.Definition) { d.Keywords = []string{"a"} },
		"annotation":  func(d *tool.Definition) { d.Annotations.ReadOnly = new(true) },
		"not this":    func(d *tool.Definition) { d.Annotations.ReadOnly = new(false) },
	} {
		if digest(func(f *fake) { change(&f.offer.Load().Tools[0]) }) == same {
			t.Errorf("%s did not change the digest", name)
		}
	}
}

func TestReadersAreNeverHeldUp(t *testing.T) {
	f := newFake(tool.SourcePlugin, "p", "x", "y")
	c := catalogOf(f)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := c.Snapshot()
				v := s.View(nil)
				for _, e := range v.Entries() {
					if got, err := v.Find(strings.ToUpper(e.Definition.Name)); err != nil || got != e {
						t.Errorf("generation %d: %v, %v", s.Generation, got, err)
						return
					}
				}
			}
		})
	}
	for i := range 200 {
		f.publish(func(o *provider.Offer) { o.Tools = f.tools("x", fmt.Sprintf("y%d", i)) })
		c.Refresh()
	}
	close(stop)
	readers.Wait()
	if g := c.Snapshot().Generation; g != 201 {
		t.Errorf("generation %d after 200 changes", g)
	}
}

func TestAHundredThousandToolsFit(t *testing.T) {
	f, small := giant(100_000), newFake(tool.SourcePlugin, "p", "x")
	c := catalogOf()
	before := heap()
	c.SetProviders([]provider.Provider{f, small})
	v := c.Snapshot().View(nil)
	if len(v.Entries()) != 100_001 {
		t.Fatalf("%d tools", len(v.Entries()))
	}
	if each := (heap() - before) / 100_001; each > 400 {
		t.Errorf("a tool takes %d bytes beside its definition", each)
	}
	if _, err := v.Find("mcp__giant__tool_100000"); tool.CodeOf(err) != tool.UnknownTool || len(tool.AsError(err).Extra) == 0 {
		t.Error(err)
	}
	n := testing.AllocsPerRun(10, func() {
		small.status(provider.Backoff, "down")
		c.Refresh()
	})
	if n > 20 {
		t.Errorf("a change of status allocates %v times", n)
	}
	runtime.KeepAlive(f)
}
