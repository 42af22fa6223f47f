package procgroup_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/internal/testenv"
)

func TestMain(m *testing.M) {
	procgroup.ShimMain()
	if os.Getenv(daemonEnv) != "" {
		playDaemon()
	}
	goleak.VerifyTestMain(m)
}

// sh starts a shell script in both ways that a program can be contained.
func sh(t *testing.T, cmd *procgroup.Command, script string) *procgroup.Process {
	t.Helper()
	cmd.Path, cmd.Args = "/bin/sh", []string{"-c", script}
	if cmd.Env == nil {
		cmd.Env = procgroup.Environment(nil, nil, os.LookupEnv)
	}
	p, err := procgroup.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(0) })
	return p
}

func eachWay(t *testing.T, test func(t *testing.T, cmd procgroup.Command)) {
	t.Run("alone", func(t *testing.T) { test(t, procgroup.Command{}) })
	eachShim(t, test)
}

func eachShim(t *testing.T, test func(t *testing.T, cmd procgroup.Command)) {
	t.Run("under the shim in a namespace", func(t *testing.T) {
		test(t, procgroup.Command{Contain: true})
	})
	t.Run("under the shim", func(t *testing.T) {
		cmd := procgroup.Command{Contain: true}
		test(t, *cmd.WithoutNamespace())
	})
}

func drain(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	return string(text)
}

func TestAProgramsStreamsAndEnd(t *testing.T) {
	tests := map[string]struct {
		script  string
		out     string
		err     string
		exit    procgroup.Exit
		endText string
	}{
		"output, error and status arrive": {
			script: "echo out; echo err >&2; exit 3", out: "out\n", err: "err\n",
			exit: procgroup.Exit{Code: 3}, endText: "exit status 3",
		},
		"standard input is null": {script: "cat; echo end", out: "end\n", endText: "exit status 0"},
		"a signal is named": {
			script: "kill -SEGV $$", exit: procgroup.Exit{Code: -1, Signal: "SIGSEGV"}, endText: "killed by SIGSEGV",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, cmd procgroup.Command) {
				p := sh(t, &cmd, tt.script)
				out, errText := drain(t, p.Stdout()), drain(t, p.Stderr())
				exit := p.ExitState()
				if diff := cmp.Diff(tt.exit, exit); diff != "" {
					t.Errorf("exit (-want +got):\n%s", diff)
				}
				if out != tt.out || errText != tt.err || exit.String() != tt.endText {
					t.Errorf("got %q, %q, %q", out, errText, exit)
				}
			})
		})
	}
}

func TestStandardInputIsAPipeWhenAskedFor(t *testing.T) {
	eachWay(t, func(t *testing.T, cmd procgroup.Command) {
		cmd.WantStdin = true
		p := sh(t, &cmd, "cat")
		if _, err := io.WriteString(p.Stdin(), "hello"); err != nil {
			t.Fatal(err)
		}
		if err := p.Stdin().Close(); err != nil {
			t.Fatal(err)
		}
		if got := drain(t, p.Stdout()); got != "hello" {
			t.Errorf("got %q", got)
		}
		if exit := p.ExitState(); exit.Code != 0 {
			t.Errorf("exit %v", exit)
		}
	})
}

func TestAProgramThatCannotBeExecutedIsAnErrorOfStart(t *testing.T) {
	file := t.TempDir() + "/plain"
	if err := os.WriteFile(file, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	eachWay(t, func(t *testing.T, cmd procgroup.Command) {
		cmd.Path = "/no/such/program"
		if _, err := procgroup.Start(&cmd); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing file: %v", err)
		}
		cmd.Path = file
		if _, err := procgroup.Start(&cmd); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a file without permission: %v", err)
		}
	})
}

func TestExtraFilesAndLifelineGetTheNumbersThatTheProgramIsTold(t *testing.T) {
	eachWay(t, func(t *testing.T, cmd procgroup.Command) {
		file := t.TempDir() + "/three"
		if err := os.WriteFile(file, []byte("third"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.ExtraFiles, cmd.Lifeline = []*os.File{f}, true
		p := sh(t, &cmd, `cat <&3; echo " $HERMESD_LIFELINE_FD"; for f in 0 1 2 3 4 5 6 7 8; do [ -e /proc/$$/fd/$f ] && echo $f; done`)
		if diff := cmp.Diff("third 4\n0\n1\n2\n3\n4\n", drain(t, p.Stdout())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestAProgramCanHaveAnotherNameAndNoNetwork(t *testing.T) {
	eachWay(t, func(t *testing.T, cmd procgroup.Command) {
		cmd.Name, cmd.NoNetwork = "another", true
		p := sh(t, &cmd, `echo $0; grep -c : /proc/self/net/dev`)
		name, devices, _ := strings.Cut(strings.TrimSpace(drain(t, p.Stdout())), "\n")
		if name != "another" {
			t.Errorf("name %q", name)
		}
		if alone := devices == "1"; alone == p.Networked() {
			t.Errorf("%s network devices, said to be networked: %v", devices, p.Networked())
		}
	})
}

func TestStopIsBounded(t *testing.T) {
	const grace = 100 * time.Millisecond
	tests := map[string]struct {
		script string
		least  time.Duration
		most   time.Duration
	}{
		"a program that listens ends at once":         {script: `trap "exit 0" TERM; echo up; while :; do sleep 0.01; done`, most: grace},
		"a deaf program ends after the grace":         {script: `trap "" TERM; echo up; sleep 60`, least: grace, most: grace + 50*time.Millisecond},
		"a stopped program ends after the grace":      {script: `echo up; kill -STOP $$`, least: grace, most: grace + 50*time.Millisecond},
		"a grandchild on the pipes delays nothing":    {script: `trap "" TERM; sleep 60 & echo up; wait`, least: 0, most: grace + 50*time.Millisecond},
		"a grandchild in a session delays nothing":    {script: `setsid sleep 60 & echo up; exec sleep 60`, most: grace + 50*time.Millisecond},
		"a program that closes its pipes is the same": {script: `echo up; exec >&- 2>&-; sleep 60`, most: grace + 50*time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, cmd procgroup.Command) {
				p := sh(t, &cmd, tt.script)
				if line, err := bufio.NewReader(p.Stdout()).ReadString('\n'); err != nil || line != "up\n" {
					t.Fatalf("first line %q, %v", line, err)
				}
				if strings.Contains(tt.script, "STOP") && !eventually(time.Second, func() bool { return stopped(p.PID()) }) {
					t.Fatal("the program did not stop itself")
				}
				begin := time.Now()
				p.Stop(grace)
				took := time.Since(begin)
				if cmd.Contain && strings.Contains(string(p.Containment()), "shim") != cmd.Contain {
					t.Errorf("contained by %s", p.Containment())
				}
				if most := strict(tt.most); took < tt.least || took > most {
					t.Errorf("took %v, want %v to %v", took, tt.least, most)
				}
				if !p.ExitState().Stopped {
					t.Error("the exit does not say that it was asked for")
				}
				p.Stop(grace) // again
			})
		})
	}
}

func TestTheGroupGoesWhenItsLeaderGoes(t *testing.T) {
	eachWay(t, func(t *testing.T, cmd procgroup.Command) {
		mark := markFile(t)
		p := sh(t, &cmd, hold(mark)+` & exit 7`)
		if exit := p.ExitState(); exit.Code != 7 || exit.Stopped {
			t.Errorf("exit %+v", exit)
		}
		gone(t, mark, 200*time.Millisecond)
	})
}

func TestTheShimCatchesWhatLeftTheGroup(t *testing.T) {
	for name, script := range map[string]string{
		"when the leader ends":    `setsid %s & setsid setsid %s & sleep 0.05; exit 7`,
		"when the leader crashes": `setsid %s & sleep 0.05; kill -KILL $$`,
	} {
		t.Run(name, func(t *testing.T) {
			eachShim(t, func(t *testing.T, cmd procgroup.Command) {
				mark := markFile(t)
				p := sh(t, &cmd, strings.ReplaceAll(script, "%s", hold(mark)))
				<-p.Done()
				gone(t, mark, 200*time.Millisecond)
			})
		})
	}
}

// stopped reports whether a process is in state T (proc(5)).
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") T ")
}

// markFile names an empty file; processes that hold it open are found by [holders], whatever namespace they live in.
func markFile(t *testing.T) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "mark")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// hold is a command that keeps the file open for a minute.
func hold(mark string) string { return "sh -c 'exec sleep 60 <" + mark + "'" }

func holders(mark string) (pids []int) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", pid)); err == nil && target == mark {
			pids = append(pids, pid)
		}
	}
	return pids
}

// gone waits until no process holds the file and fails after the bound.
func gone(t *testing.T, mark string, bound time.Duration) {
	t.Helper()
	if !eventually(bound, func() bool { return len(holders(mark)) == 0 }) {
		t.Errorf("still running after %v: %v", bound, holders(mark))
	}
}

// strict is a bar as it stands where the run has the machine to itself. Elsewhere the machine may be busy with other tests,
// and only what hangs is found.
func strict(bar time.Duration) time.Duration {
	if !testenv.Quiet() {
		bar += 2 * time.Second
	}
	return bar
}

func eventually(bound time.Duration, cond func() bool) bool {
	bound = strict(bound)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(bound); !cond(); <-tick.C {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
