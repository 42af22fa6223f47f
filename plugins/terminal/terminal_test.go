//go:build linux

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/pluginsdk"
	"github.com/hermesd/hermesd/pluginsdk/plugintest"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/conformance"
)

func start(t *testing.T, config map[string]any) *plugintest.Session {
	t.Helper()
	return plugintest.Start(t, plugin(), &plugintest.Options{Config: config})
}

func run(t *testing.T, s *plugintest.Session, command string) *plugintest.Outcome {
	t.Helper()
	return s.Call(t, "terminal", map[string]any{"command": command})
}

func TestThePluginKeepsTheContract(t *testing.T) {
	plugintest.Conformance(t, plugin, &conformance.Options{
		Calls: []conformance.Call{{Tool: "terminal", Arguments: json.RawMessage(`{"command":"echo hi"}`)}},
		Slow:  []conformance.Call{{Tool: "terminal", Arguments: json.RawMessage(`{"command":"sleep 60"}`)}},
	})
}

func TestWhatACommandGivesBack(t *testing.T) {
	s := start(t, map[string]any{"root": t.TempDir(), "max_output_bytes": 1024})
	for name, tt := range map[string]struct{ command, want string }{
		"its output":                      {`echo out; echo err >&2`, "out\nerr\n\n[exit status 0]"},
		"nothing":                         {`true`, "[exit status 0]"},
		"its exit status":                 {`echo x; exit 3`, "x\n\n[exit status 3]"},
		"the signal that ended it":        {`kill -9 $$`, "[signal: killed]"},
		"the end of a long output":        {`i=0; while [ $i -lt 300 ]; do echo "line $i"; i=$((i+1)); done`, ""},
		"what is no text, as a mark":      {`printf '\377x'`, "\uFFFDx\n[exit status 0]"},
		"no input":                        {`cat; echo end`, "end\n\n[exit status 0]"},
		"before what it left behind ends": {`sleep 60 & echo started`, "started\n\n[exit status 0]"},
	} {
		t.Run(name, func(t *testing.T) {
			o := run(t, s, tt.command)
			if o.Err != nil || o.IsError || o.Duration > 10*time.Second {
				t.Fatalf("%+v", o)
			}
			if tt.want != "" && o.Text() != tt.want {
				t.Errorf("got %q, want %q", o.Text(), tt.want)
			}
			if tt.want == "" && (!strings.HasPrefix(o.Text(), "[the first ") || !strings.Contains(o.Text(), "line 299\n") || strings.Contains(o.Text(), "line 100\n") || len(o.Text()) > 1200) {
				t.Errorf("not the end: %q", o.Text())
			}
		})
	}
	o := run(t, s, `exit 3`)
	var got map[string]any
	if err := json.Unmarshal(o.Structured, &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "duration_ms")
	if diff := cmp.Diff(map[string]any{"exit_code": 3.0, "timed_out": false, "omitted_bytes": 0.0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhereACommandRuns(t *testing.T) {
	root := t.TempDir()
	outside := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := start(t, map[string]any{"root": root})
	for cwd, want := range map[string]string{
		"": root, "a": filepath.Join(root, "a"), "a/../a/b": filepath.Join(root, "a", "b"), filepath.Join(root, "a"): filepath.Join(root, "a"),
		"..": "", "/": "", "a/../..": "", "out": "", "missing": "", "file": "", outside: "", root + "/../" + filepath.Base(outside): "",
	} {
		o := s.Call(t, "terminal", map[string]any{"command": "pwd -P", "cwd": cwd})
		if want == "" {
			if o.Code() != pluginsdk.InvalidArguments || o.Err.Pointer != "/cwd" {
				t.Errorf("cwd %q: %q, %v", cwd, o.Text(), o.Err)
			}
		} else if got, _, _ := strings.Cut(o.Text(), "\n"); got != want {
			t.Errorf("cwd %q ran in %q, want %q (%v)", cwd, got, want, o.Err)
		}
	}
}

// pids reads the process ids that a script wrote.
func pids(t *testing.T, dir string) []int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	for _, f := range strings.Fields(string(raw)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pid)
	}
	return list
}

// gone waits until none of the processes runs; a zombie, which init reaps in its own time, does not.
func gone(t *testing.T, list []int) {
	t.Helper()
	for end := time.Now().Add(2 * time.Second); ; <-time.After(5 * time.Millisecond) {
		running := 0
		for _, pid := range list {
			stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
			if err == nil && !strings.Contains(string(stat), ") Z ") {
				running++
			}
		}
		if running == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %v are still there", running, list)
		}
	}
}

const tree = `echo $$ > pids; sleep 300 & echo $! >> pids; (trap '' TERM HUP; sleep 300) & echo $! >> pids; `

func TestNothingOfACommandIsLeft(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for name, tt := range map[string]struct {
		end    string
		cancel bool
	}{
		"that ended":                     {end: `exit 0`},
		"whose time was over":            {end: `wait`},
		"whose time was over, stubborn":  {end: `trap '' TERM; while :; do sleep 1; done`},
		"whose caller went":              {end: `wait`, cancel: true},
		"whose caller went, it printing": {end: `yes`, cancel: true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			s := start(t, map[string]any{"root": root})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.cancel {
				go func() {
					for ctx.Err() == nil {
						if raw, err := os.ReadFile(filepath.Join(root, "pids")); err == nil && strings.Count(string(raw), "\n") == 3 {
							cancel()
						}
					}
				}()
			}
			o := s.CallContext(ctx, t, "ann", "terminal", map[string]any{"command": tree + tt.end, "timeout": 1})
			if strings.HasPrefix(name, "whose time") && (!o.IsError || !strings.Contains(o.Text(), "ended after its time limit of 1s")) {
				t.Errorf("%+v, %q", o, o.Text())
			}
			gone(t, pids(t, root))
		})
	}
}

func TestACommandThatIsEndedCanCleanUp(t *testing.T) {
	root := t.TempDir()
	s := start(t, map[string]any{"root": root})
	o := s.Call(t, "terminal", map[string]any{"command": `trap 'echo bye; exit 1' TERM; echo hello; sleep 60 & wait`, "timeout": 1})
	if !o.IsError || !strings.Contains(o.Text(), "hello\nbye\n") {
		t.Errorf("%q", o.Text())
	}
}

func TestTwoAgentsShareNothing(t *testing.T) {
	s := start(t, map[string]any{})
	as := func(agent, command string) string {
		t.Helper()
		o := s.CallAs(t, agent, "terminal", map[string]any{"command": command})
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		return o.Text()
	}
	as("ann", `export SECRET=annas; cd /; echo mine > "$HOME/file"; alias ls=false`)
	for name, tt := range map[string]struct{ agent, command, want string }{
		"another agent has no file of it":          {"bob", `ls -A; ls -A "$HOME"; echo done`, "done\n\n[exit status 0]"},
		"another agent has nothing of its shell":   {"bob", `echo "[$SECRET]"; test "$(pwd)" = "$HOME" && echo home`, "[]\nhome\n\n[exit status 0]"},
		"not even itself has, in the next command": {"ann", `echo "[$SECRET]"; test "$(pwd)" = "$HOME" && cat file`, "[]\nmine\n\n[exit status 0]"},
		"a name with slashes stays inside":         {"../ann", `ls -A; echo done`, "done\n\n[exit status 0]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := as(tt.agent, tt.command); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if a, b := as("ann", "pwd"), as("bob", "pwd"); a == b {
		t.Errorf("both work in %s", a)
	}
	var wg sync.WaitGroup // at the same time, too
	for _, agent := range []string{"ann", "bob"} {
		wg.Go(func() {
			for range 5 {
				if got := as(agent, `echo `+agent+` > who; sleep 0.02; cat who`); got != agent+"\n\n[exit status 0]" {
					t.Errorf("%s reads %q", agent, got)
				}
			}
		})
	}
	wg.Wait()
}

func TestACommandGetsOnlyTheEnvironmentThatTheOperatorNames(t *testing.T) {
	t.Setenv("SECRET", "hunter2")
	t.Setenv("GIVEN", "yes")
	s := start(t, map[string]any{"root": t.TempDir(), "env_pass": []string{"GIVEN"}})
	if got := run(t, s, `echo "[$SECRET][$GIVEN][$TERM]"`).Text(); !strings.HasPrefix(got, "[][yes][dumb]\n") {
		t.Error(got)
	}
	self, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(run(t, s, "env").Text(), "hunter2") || len(self) == 0 {
		t.Error("a secret of the plugin's process is in the command's environment")
	}
}

func TestLimitsAndConfiguration(t *testing.T) {
	s := start(t, map[string]any{"root": t.TempDir(), "max_timeout": 5, "timeout": 2})
	if o := s.Call(t, "terminal", map[string]any{"command": "true", "timeout": 6}); o.Code() != pluginsdk.InvalidArguments || o.Err.Pointer != "/timeout" {
		t.Errorf("%+v", o.Err)
	}
	if o := s.Call(t, "terminal", map[string]any{"command": ""}); o.Code() != pluginsdk.InvalidArguments {
		t.Errorf("an empty command: %+v", o.Err)
	}
	for name, config := range map[string]map[string]any{
		"/root":    {"root": "/nowhere/at/all"},
		"/shell":   {"shell": "/nowhere/sh"},
		"/timeout": {"timeout": 10, "max_timeout": 5},
	} {
		faults := plugintest.Configure(t, plugin(), config)
		if len(faults) != 1 || faults[0].Path != name {
			t.Errorf("%v: %+v", config, faults)
		}
	}
}

func TestTheTailKeepsWholeCharacters(t *testing.T) {
	for name, tt := range map[string]struct {
		writes  []string
		want    string
		omitted int64
	}{
		"all of it":               {[]string{"ab", "cd"}, "abcd", 0},
		"the end of many":         {[]string{"abc", "def", "ghi", "jkl"}, "ghijkl", 6},
		"the end of a big one":    {[]string{"x", "abcdefghij"}, "efghij", 5},
		"no half character":       {[]string{"aaaa", "ééé", "b"}, "ééb", 6},
		"a character in pieces":   {[]string{"\xc3", "\xa9"}, "é", 0},
		"bytes that are no texts": {[]string{"\x80\x80\x80\x80\x80\x80\x80"}, "\uFFFD", 5},
	} {
		t.Run(name, func(t *testing.T) {
			tl := &tail{keep: 6}
			for _, w := range tt.writes {
				if n, err := tl.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatal(n, err)
				}
			}
			if got, omitted := tl.text(); got != tt.want || omitted != tt.omitted {
				t.Errorf("%q after %d bytes, want %q after %d", got, omitted, tt.want, tt.omitted)
			}
		})
	}
}
