package sandbox_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/internal/confine"
	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/internal/testbin"
	"github.com/hermesd/hermesd/runtime/pluginhost/sandbox"
)

func TestMain(m *testing.M) {
	procgroup.ShimMain()
	goleak.VerifyTestMain(m)
}

// house is a daemon's folders with a secret in them, and a plugin's beside.
type house struct {
	daemon, secret, config string // not the plugin's
	state, docs            string // the plugin's own, and what its block names
}

func newHouse(t *testing.T) *house {
	t.Helper()
	root := t.TempDir()
	h := &house{
		daemon: filepath.Join(root, "state"), config: filepath.Join(root, "etc", "config.hcl"), docs: filepath.Join(root, "docs"),
	}
	h.state, h.secret = filepath.Join(h.daemon, "plugins", "x"), filepath.Join(h.daemon, "hermesd.db")
	for _, dir := range []string{h.state, filepath.Dir(h.config), h.docs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{h.secret, h.config, filepath.Join(h.docs, "readme"), filepath.Join(root, "stray")} {
		if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// try runs the attempts under a level and returns what became of each, with the layers.
func (h *house) try(t *testing.T, level string, o sandbox.Options, attempts ...string) (map[string]string, []confine.Layer) {
	t.Helper()
	cmd := &procgroup.Command{Path: attemptsBinary(t), Args: attempts, Env: procgroup.Environment(nil, nil, os.LookupEnv)}
	o.Level, o.StateDir, o.Private = level, h.state, []string{h.daemon, h.config}
	if err := sandbox.Confine(cmd, &o); err != nil {
		t.Fatal(err)
	}
	p, err := procgroup.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(0) })
	out, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(p.Stderr())
	if err != nil || len(text) > 0 {
		t.Errorf("stderr: %s, %v", text, err)
	}
	if exit := p.ExitState(); exit.Code != 0 {
		t.Errorf("%s", exit)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(out)) {
		kind, result, _ := strings.Cut(strings.TrimSpace(line), " ")
		got[kind] = result
	}
	return got, p.Layers()
}

// attemptsEnv names the binary of attempts for a run of these tests by a user who cannot build it.
const attemptsEnv = "SANDBOX_TEST_ATTEMPTS"

func attemptsBinary(t *testing.T) string {
	if path := os.Getenv(attemptsEnv); path != "" {
		return path
	}
	return testbin.Build(t, "internal/testbin/attempts")
}

// have skips a test where the machine lacks a layer.
func have(t *testing.T, layers []confine.Layer, name string) {
	t.Helper()
	i := slices.IndexFunc(layers, func(l confine.Layer) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("no word of the layer %q: %+v", name, layers)
	}
	if !layers[i].Applied {
		t.Skipf("layer %q: %s", name, layers[i].Detail)
	}
}

func TestAConfinedProgramIsRefused(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	h := newHouse(t)
	admin, err := net.Listen("unix", filepath.Join(h.daemon, "admin.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	tests := map[string]struct {
		level, layer string
		attempt      string
		reason       string // of the refusal; "" where it must be allowed
	}{
		"reading the daemon's state":         {"default", confine.LayerFiles, "read=" + h.secret, "permission denied"},
		"listing the daemon's state":         {"default", confine.LayerFiles, "list=" + h.daemon, "permission denied"},
		"writing to the daemon's state":      {"default", confine.LayerFiles, "write=" + h.secret, "permission denied"},
		"adding to the daemon's state":       {"default", confine.LayerFiles, "write=" + h.secret + ".new", "permission denied"},
		"removing from the daemon's state":   {"default", confine.LayerFiles, "remove=" + h.secret, "permission denied"},
		"reading the daemon's configuration": {"default", confine.LayerFiles, "read=" + h.config, "permission denied"},
		"reading a stray file":               {"default", confine.LayerFiles, "read=" + filepath.Dir(h.daemon) + "/stray", "permission denied"},
		"reading passwords":                  {"default", confine.LayerFiles, "read=/etc/shadow", "permission denied"},
		"writing to the system":              {"default", confine.LayerFiles, "write=/usr/attempt", "permission denied"},
		"tracing its parent":                 {"default", confine.LayerCalls, "ptrace=1", "not permitted"},
		"mounting":                           {"default", confine.LayerCalls, "mount=" + h.state, "not permitted"},
		"reading keys":                       {"default", confine.LayerCalls, "keyring", "not permitted"},
		"setting the clock":                  {"default", confine.LayerCalls, "clock", "not permitted"},
		"signalling the daemon":              {"default", confine.LayerFiles, fmt.Sprintf("signal=%d", os.Getpid()), "(no such process|not permitted)"},
		"commanding the daemon":              {"default", confine.LayerHide, "dial=unix:" + admin.Addr().String(), "connection refused"},
		"allocating 2 GiB":                   {"default", confine.LayerMemory, "alloc=2147483648", "cannot allocate memory"},
		"a namespace":                        {"strict", confine.LayerCalls, "unshare", "not permitted"},
		"connecting out":                     {"strict", confine.LayerNetwork, "dial=tcp:" + tcp.Addr().String(), "permission denied"},
		"sending out":                        {"strict", confine.LayerNetwork, "dial=udp:127.0.0.1:9", "permission denied"},
		"what its block names, under strict": {"strict", confine.LayerFiles, "read=" + h.docs + "/readme", "permission denied"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, layers := h.try(t, tt.level, sandbox.Options{
				Config: []byte(fmt.Sprintf(`{"root":%q,"all":%q,"here":"/","key":%q}`, h.docs, filepath.Dir(h.daemon), h.secret)), AdminSocket: admin.Addr().String(),
			}, tt.attempt)
			have(t, layers, tt.layer)
			kind, _, _ := strings.Cut(tt.attempt, "=")
			if !regexp.MustCompile("^refused: .*" + tt.reason).MatchString(got[kind]) {
				t.Errorf("%s: %s", tt.attempt, got[kind])
			}
		})
	}
}

// What a program plants in its folders is not followed when it is started again.
func TestALinkOpensNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		link    string // in the folder that the block names
		options func(h *house, link string) sandbox.Options
	}{
		"for a file that the block names": {"new.db", func(h *house, link string) sandbox.Options {
			return sandbox.Options{Config: fmt.Appendf(nil, `{"database":%q}`, link)}
		}},
		"in a folder that the block names": {"cache", func(h *house, link string) sandbox.Options {
			return sandbox.Options{Config: fmt.Appendf(nil, `{"root":%q,"cache":%q}`, h.docs, link)}
		}},
		"in a folder that may be written to": {"cache", func(h *house, link string) sandbox.Options {
			return sandbox.Options{Write: []string{h.docs, link}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			_, layers := h.try(t, sandbox.Default, sandbox.Options{})
			have(t, layers, confine.LayerFiles)
			link, loop := filepath.Join(h.docs, tt.link), filepath.Join(h.docs, "loop")
			for path, target := range map[string]string{link: h.daemon, loop: loop} {
				if err := os.Symlink(target, path); err != nil {
					t.Fatal(err)
				}
			}
			o := tt.options(h, link)
			o.Read = append(o.Read, loop, "/"+strings.Repeat("x", 300)) // what cannot be opened must not cost the whole layer
			got, _ := h.try(t, sandbox.Default, o, "read="+h.secret, "write="+h.secret, "list="+h.daemon)
			for attempt, result := range got {
				if !strings.HasPrefix(result, "refused: ") {
					t.Errorf("%s: %s", attempt, result)
				}
			}
		})
	}
}

func TestAConfinedProgramKeepsWhatItNeeds(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	h := newHouse(t)
	opened := filepath.Join(t.TempDir(), "opened")
	if err := os.Mkdir(opened, 0o700); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		options  sandbox.Options
		levels   []string
		attempts []string
	}{
		"its own folder, temporary files, programs of the system": {
			levels:   []string{"none", "default", "strict"},
			attempts: []string{"write=" + h.state + "/file", "tempdir", "run=/bin/true", "read=/etc/hosts", "read=/proc/self/status", "write=/dev/null", "alloc=1073741824"},
		},
		"the network": {levels: []string{"none", "default"}, attempts: []string{"dial=tcp:" + tcp.Addr().String()}},
		"the folder that its configuration names": {
			options: sandbox.Options{Config: []byte(fmt.Sprintf(`{"roots":[{"path":%q}]}`, h.docs))}, levels: []string{"default"},
			attempts: []string{"read=" + h.docs + "/readme", "write=" + h.docs + "/new", "list=" + h.docs},
		},
		"what the operator opens by hand": {
			options: sandbox.Options{Read: []string{h.docs}, Write: []string{opened}}, levels: []string{"default", "strict"},
			attempts: []string{"read=" + h.docs + "/readme", "write=" + opened + "/new"},
		},
	}
	for name, tt := range tests {
		for _, level := range tt.levels {
			t.Run(name+" under "+level, func(t *testing.T) {
				t.Parallel()
				got, _ := h.try(t, level, tt.options, tt.attempts...)
				for _, attempt := range tt.attempts {
					if kind, _, _ := strings.Cut(attempt, "="); got[kind] != "allowed" {
						t.Errorf("%s: %s", attempt, got[kind])
					}
				}
			})
		}
	}
}

func TestAForkBombEndsAtTheLimit(t *testing.T) {
	_, layers := newHouse(t).try(t, "default", sandbox.Options{})
	have(t, layers, confine.LayerProcesses)
	got, _ := newHouse(t).try(t, "default", sandbox.Options{}, "bomb", "tempdir")
	if !regexp.MustCompile(`^refused: after [0-9]+ children: .*resource temporarily unavailable`).MatchString(got["bomb"]) {
		t.Errorf("bomb: %s", got["bomb"])
	}
	if got["tempdir"] != "allowed" {
		t.Errorf("after it: %v", got)
	}
}
