//go:build linux

package hooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/hooks"
	"github.com/hermesd/hermesd/runtime/tool"
)

// script makes a hook of a shell script.
func script(t *testing.T, text string, args ...string) hooks.Runner {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := hooks.NewExec(&hooks.Exec{Command: append([]string{path}, args...)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatAProgramMayDo(t *testing.T) {
	big := call()
	big.Arguments = json.RawMessage(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)
	for name, tt := range map[string]struct {
		script string
		call   *hooks.Call
		want   hooks.Verdict
		detail string // of a failure
	}{
		"say nothing":                    {script: `exit 0`, want: hooks.Verdict{Action: "allow"}},
		"read the event and answer":      {script: `in=$(cat); case "$in" in *'"tool_name":"wipe"'*) echo '{"action":"block","message":"seen"}';; esac`, want: hooks.Verdict{Action: "block", Hook: "a", Message: "seen"}},
		"answer without reading it":      {script: `echo '{"action":"ask","message":"?"}'`, call: big, want: hooks.Verdict{Action: "ask", Hook: "a", Message: "?"}},
		"block with the status 2":        {script: `echo "not on" >&2; echo "a Sunday" >&2; echo '{"action":"allow"}'; exit 2`, want: hooks.Verdict{Action: "block", Hook: "a", Message: "not on\na Sunday"}},
		"block with the status 2 only":   {script: `exit 2`, want: hooks.Verdict{Action: "block", Hook: "a", Message: `the hook "a" gave no reason`}},
		"speak the older shape":          {script: `echo '{"decision":"block","reason":"r"}'`, want: hooks.Verdict{Action: "block", Hook: "a", Message: "r"}},
		"write to standard error":        {script: `echo debug >&2`, want: hooks.Verdict{Action: "allow"}},
		"fail":                           {script: `echo "no such file" >&2; exit 1`, detail: `exit status 1; its last words: "no such file"`},
		"fail after an answer":           {script: `echo '{"action":"allow"}'; exit 3`, detail: "exit status 3"},
		"be killed":                      {script: `kill -9 $$`, detail: "killed by SIGKILL"},
		"print half a JSON":              {script: `printf '{"action":"al'`, detail: "not the JSON of a decision"},
		"flood standard output":          {script: `while :; do echo "{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}"; done`, detail: "printed more than 1048576 bytes"},
		"flood standard error":           {script: `dd if=/dev/zero bs=1024 count=4096 2>/dev/null | tr '\0' x >&2; echo '{"action":"block","message":"m"}'`, want: hooks.Verdict{Action: "block", Hook: "a", Message: "m"}},
		"hang":                           {script: `exec sleep 60`, detail: "took longer than 300ms"},
		"hang and ignore signals":        {script: `trap '' TERM INT; while :; do sleep 1; done`, detail: "took longer than 300ms"},
		"leave a child with its streams": {script: `sleep 60 & echo '{"action":"block","message":"m"}'`, want: hooks.Verdict{Action: "block", Hook: "a", Message: "m"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := tt.call
			if one == nil {
				one = call()
			}
			timeout := 10 * time.Second
			if strings.HasPrefix(name, "hang") {
				timeout = 300 * time.Millisecond
			}
			c := newChain(t, nil, hooks.Hook{On: hooks.PreCall, Timeout: timeout, Runner: script(t, tt.script)})
			began := time.Now()
			v, err := c.Before(t.Context(), one)
			if diff := cmp.Diff(tt.want, v); diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if tt.detail == "" && err != nil || tt.detail != "" && (code(err) != tool.HookFailed || !strings.Contains(err.Detail, tt.detail)) {
				t.Errorf("failed with %v (%q), want %q", err, detail(err), tt.detail)
			}
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func detail(err *tool.Error) string {
	if err == nil {
		return ""
	}
	return err.Detail
}

func TestNothingOfAHookIsLeft(t *testing.T) {
	for name, end := range map[string]string{
		"that ended":           `exit 0`,
		"that hung":            `wait`,
		"that flooded":         `while :; do echo "$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0"; done`,
		"that ignored SIGTERM": `trap '' TERM; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := script(t, `echo $$ > "$1/leader"; sleep 300 & echo $! > "$1/child"; (trap '' TERM HUP; sleep 300) & echo $! > "$1/stubborn"; `+end, dir)
			c := newChain(t, nil, hooks.Hook{On: hooks.PreCall, Timeout: 500 * time.Millisecond, Runner: r})
			c.Before(t.Context(), call()) //nolint:errcheck // what is left counts
			for _, who := range []string{"leader", "child", "stubborn"} {
				raw, err := os.ReadFile(filepath.Join(dir, who))
				if err != nil {
					t.Fatal(err)
				}
				pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
				if err != nil {
					t.Fatal(err)
				}
				if alive(pid) {
					t.Errorf("the %s (%d) lives on", who, pid)
				}
			}
		})
	}
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	for range 200 { // a killed orphan is reaped by init in its own time
		if syscall.Kill(pid, 0) != nil {
			return false
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return false
		}
		<-time.After(5 * time.Millisecond)
	}
	return true
}

func TestOverlappingRunsOfAProgram(t *testing.T) {
	c := newChain(t, nil, hooks.Hook{On: hooks.PreCall, Timeout: 5 * time.Second, Runner: script(t, `cat >/dev/null; sleep 0.2; echo '{"action":"ask","message":"'$$'"}'`)})
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			v, err := c.Before(context.Background(), call())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[v.Message] = true
		})
	}
	wg.Wait()
	if len(seen) != 8 {
		t.Errorf("8 calls were %d runs", len(seen))
	}
}

func TestAProgramGetsNothingOfTheDaemonsSecrets(t *testing.T) {
	t.Setenv("HERMESD_TEST_SECRET", "hunter2")
	r := script(t, `cat >/dev/null; if env | grep -q hunter2; then echo "leaked" >&2; exit 2; fi; test -n "$PATH"`)
	if v, err := newChain(t, nil, hooks.Hook{On: hooks.PreCall, Runner: r}).Before(t.Context(), call()); err != nil || v.Action != hooks.Allow {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestAProgramThatDoesNotExist(t *testing.T) {
	for name, command := range map[string][]string{"no program": nil, "an empty name": {""}, "a missing file": {"/nowhere/guard"}, "no executable": {"exec_test.go"}} {
		if _, err := hooks.NewExec(&hooks.Exec{Command: command}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	r := script(t, `exit 0`)
	gone := hooks.Hook{On: hooks.PreCall, Runner: r}
	c := newChain(t, nil, gone)
	if _, err := c.Before(t.Context(), call()); err != nil {
		t.Fatal(err)
	}
}
