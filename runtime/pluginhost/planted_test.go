//go:build unix

package pluginhost_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/confine"
	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/tool"
)

// answerBound is how long the daemon may take to answer a store request, or to stop, whatever was planted.
const answerBound = 5 * time.Second

// valueFile is the name of the file in which a key space keeps a key's value.
func valueFile(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16]) + ".value"
}

// planter is a plugin that may use a key space and plants things in it.
type planter struct {
	*host
	opts    *pluginhost.Options
	outside string // a folder that is not the plugin's
}

func newPlanter(t *testing.T, isolation string) *planter {
	t.Helper()
	o := options(t)
	o.Grant, o.Isolation, o.KeysDir = []string{"store"}, isolation, filepath.Join(filepath.Dir(o.StateDir), "keys", o.Name)
	p := &planter{opts: o, outside: t.TempDir()}
	p.host = start(t, o)
	p.ready()
	return p
}

// must fails the test, and does not wait, when something takes longer than it may.
func must[T any](t *testing.T, what string, f func() T) T {
	t.Helper()
	done := make(chan T, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(strict(answerBound))
	defer timer.Stop()
	select {
	case x := <-done:
		return x
	case <-timer.C:
		t.Fatalf("%s does not end", what)
		panic("unreachable")
	}
}

func (p *planter) plant(kind, path, target string) string {
	p.t.Helper()
	args, err := json.Marshal(map[string]string{"kind": kind, "path": path, "target": target})
	if err != nil {
		p.t.Fatal(err)
	}
	return p.text("plant", string(args))
}

// store makes a store request, in the call or outside.
func (p *planter) store(operation int, key string, outside bool) string {
	p.t.Helper()
	type outcome struct {
		result *tool.Result
		err    error
	}
	o := must(p.t, "a store request", func() outcome {
		result, err := p.invoke("store", fmt.Sprintf(`{"operation":%d,"key":%q,"size":3,"outside":%v}`, operation, key, outside))
		return outcome{result, err}
	})
	if o.err != nil {
		p.t.Fatalf("store: %v\n%s", o.err, p.log)
	}
	return o.result.Text()
}

// end stops the provider and looks at what is not the plugin's.
func (p *planter) end() {
	p.t.Helper()
	must(p.t, "the stop", func() bool { p.stop(); return true })
	if left, err := os.ReadDir(p.outside); err != nil || len(left) != 1 {
		p.t.Errorf("outside the key space: %v, %v", left, err)
	}
	if content, err := os.ReadFile(filepath.Join(p.outside, "file")); err != nil || string(content) != "untouched" {
		p.t.Errorf("the file outside: %q, %v", content, err)
	}
}

func (p *planter) seed() {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.outside, "file"), []byte("untouched"), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

const (
	opGet, opPut, opDelete, opList = 0, 1, 2, 3
)

// What a plugin plants in its own folder, where key spaces were once, neither holds the daemon nor leads it astray.
func TestWhatAPluginPlantsInItsOwnFolderHoldsNobody(t *testing.T) {
	t.Parallel()
	file := "/store/" + valueFile("k")
	for name, tt := range map[string]struct {
		kind, path, target string
		outside            bool // the first request, which looks at the former place, is made outside a call
	}{
		"a pipe as a value":                {kind: "fifo", path: file},
		"a pipe as a value, from Watch":    {kind: "fifo", path: file, outside: true},
		"a link to a device as a value":    {kind: "link", path: file, target: "/dev/zero"},
		"a link to a file as a value":      {kind: "link", path: file, target: "OUTSIDE/file", outside: true},
		"a folder as a value":              {kind: "folder", path: file},
		"10 GiB of nothing as a value":     {kind: "sparse", path: file, outside: true},
		"far too many files":               {kind: "many", path: "/store/x"},
		"a pipe as the folder":             {kind: "fifo", path: "/store"},
		"a pipe as the folder, from Watch": {kind: "fifo", path: "/store", outside: true},
		"a link as the folder":             {kind: "link", path: "/store", target: "OUTSIDE"},
		"a link to nowhere":                {kind: "link", path: "/store", target: "/nowhere/at/all", outside: true},
		"a link that leads to itself":      {kind: "link", path: "/store", target: "store"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlanter(t, pluginhost.IsolationDefault)
			p.seed()
			if got := p.plant(tt.kind, p.opts.StateDir+tt.path, strings.ReplaceAll(tt.target, "OUTSIDE", p.outside)); got != "planted" {
				t.Fatal(got)
			}
			outside := tt.outside
			for _, step := range []struct {
				operation int
				want      string
			}{
				{opGet, "found false"}, {opList, `found false, value "", keys []`}, {opPut, "found true"},
				{opGet, `found true, value "\x00\x00\x00"`}, {opList, `keys ["k"]`}, {opDelete, "found true"}, {opGet, "found false"},
			} {
				key := "k"
				if step.operation == opList {
					key = ""
				}
				if got := p.store(step.operation, key, outside); !strings.Contains(got, step.want) {
					t.Errorf("operation %d: got %q, want %q", step.operation, got, step.want)
				}
				outside = !outside
			}
			p.end()
		})
	}
}

// Where nothing confines a plugin it reaches its key space, too.
func TestWhatAPluginPlantsInItsKeySpaceIsAClearError(t *testing.T) {
	t.Parallel()
	file := "/" + valueFile("k")
	for name, tt := range map[string]struct{ kind, path, target, want string }{
		"a pipe as a value":             {"fifo", file, "", "is a named pipe, no regular file"},
		"a link to a device as a value": {"link", file, "/dev/zero", "path escapes from parent"},
		"a link to a file as a value":   {"link", file, "OUTSIDE/file", "path escapes from parent"},
		"a folder as a value":           {"folder", file, "", "is a folder, no regular file"},
		"10 GiB of nothing as a value":  {"sparse", file, "", "more bytes than the biggest value"},
		"a pipe as the folder":          {"fifo", "", "", "is a named pipe, no folder"},
		"a link as the folder":          {"link", "", "OUTSIDE", "is a link, no folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlanter(t, pluginhost.IsolationNone)
			p.seed()
			if got := p.plant(tt.kind, p.opts.KeysDir+tt.path, strings.ReplaceAll(tt.target, "OUTSIDE", p.outside)); got != "planted" {
				t.Fatal(got)
			}
			for _, outside := range []bool{false, true} {
				if got := p.store(opGet, "k", outside); !strings.HasPrefix(got, "error ") || !strings.Contains(got, tt.want) {
					t.Errorf("get, outside a call %v: got %q, want %q", outside, got, tt.want)
				}
				for _, operation := range []int{opList, opPut, opDelete} {
					p.store(operation, "other", outside) // ends
				}
			}
			if p.store(opPut, "k", false); tt.kind == "link" && tt.path != "" { // the link is replaced, not followed
				if got := p.store(opGet, "k", false); !strings.Contains(got, "found true") {
					t.Errorf("put in a link's place, then get: %q", got)
				}
			}
			p.end()
		})
	}
}

func TestAConfinedPluginDoesNotReachItsKeySpace(t *testing.T) {
	t.Parallel()
	p := newPlanter(t, pluginhost.IsolationDefault)
	i := slices.IndexFunc(p.Inspect().Layers, func(l pluginhost.Layer) bool { return l.Name == confine.LayerFiles })
	if i < 0 || !p.Inspect().Layers[i].Applied {
		t.Skip("this machine confines no files")
	}
	p.store(opPut, "k", false)
	for _, path := range []string{p.opts.KeysDir + "/new", p.opts.KeysDir + "/sub/new"} {
		if got := p.plant("fifo", path, ""); !strings.Contains(got, "refused") {
			t.Errorf("%s: %s", path, got)
		}
	}
}
