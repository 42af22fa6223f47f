package pipeline_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// victimEnv makes the test binary the process that is killed; victimSync is its "power" or "process".
const (
	victimEnv  = "HERMESD_TEST_VICTIM"
	victimSync = "HERMESD_TEST_VICTIM_SYNC"
	// roundsEnv sets how often it is killed, for a longer run than the usual.
	roundsEnv = "HERMESD_KILL_ROUNDS"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimEnv); dir != "" {
		fmt.Fprintln(os.Stderr, victim(dir, os.Getenv(victimSync) == "power"))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// victim makes calls until it is killed. Each call appends its id to the file "ran" when it really runs, and each that has
// ended writes a byte to standard output.
func victim(dir string, power bool) error {
	l, _, err := auditIn(context.Background(), dir, power)
	if err != nil {
		return err
	}
	p, err := pipeline.New(&pipeline.Options{Audit: l})
	if err != nil {
		return err
	}
	ran, err := os.OpenFile(ranFile(dir), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	k := newKB()
	k.busy = true
	k.invoke = func(_ context.Context, req *provider.Request) (*tool.Result, error) {
		if _, err := ran.WriteString(req.Call.ID + "\n"); err != nil {
			return nil, err
		}
		return tool.TextResult("found"), nil
	}
	failed := make(chan error)
	for range 8 {
		go func() {
			for {
				if out := p.Call(context.Background(), k.request("search", `{"n":1}`)); out.Err != nil {
					failed <- out.Err
					return
				}
				if _, err := os.Stdout.Write([]byte{'.'}); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

func ranFile(dir string) string { return filepath.Join(dir, "ran") }

func TestADaemonThatIsKilledLosesNoCall(t *testing.T) {
	rounds := 3
	if s := os.Getenv(roundsEnv); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		rounds = n
	}
	for _, sync := range []string{"power", "process"} {
		t.Run(sync, func(t *testing.T) {
			dir := t.TempDir()
			calls := 0
			for range rounds {
				n := 1 + rand.IntN(300)
				kill(t, dir, sync, n)
				calls = examine(t, dir)
			}
			t.Logf("%d calls, killed %d times", calls, rounds)
		})
	}
}

// kill starts a victim and kills it when it has made n calls.
func kill(t *testing.T, dir, sync string, n int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"="+dir, victimSync+"="+sync)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = io.CopyN(io.Discard, bufio.NewReader(out), int64(n))
	if killed := cmd.Process.Kill(); err != nil || killed != nil {
		t.Fatalf("%v, %v: %s", err, killed, stderr.String())
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the victim ended by itself")
	}
}

// examine opens what the victim left, as the next daemon would, and returns how many calls have run so far.
func examine(t *testing.T, dir string) int {
	t.Helper()
	l, s, err := auditIn(t.Context(), dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	defer l.Close()
	report, err := l.Verify(t.Context())
	if err != nil || report.Fault != nil {
		t.Fatalf("%+v, %v", report.Fault, err)
	}
	starts, ends := map[string]bool{}, map[string]tool.Outcome{}
	for after := int64(0); ; {
		page, err := l.Query(t.Context(), &audit.Filter{After: after, OldestFirst: true, Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			after = e.Seq
			switch _, ended := ends[e.CallID]; {
			case e.Kind == tool.RecordStarted:
				starts[e.CallID] = true
			case ended:
				t.Errorf("call %s ended twice", e.CallID)
			default:
				ends[e.CallID] = e.Outcome
			}
		}
		if len(page) == 0 {
			break
		}
	}
	raw, err := os.ReadFile(ranFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	ran := strings.Fields(string(raw))
	for _, id := range ran {
		if !starts[id] {
			t.Errorf("call %s ran without a record of its start", id)
		}
	}
	for id := range starts {
		if o := ends[id]; o != tool.OutcomeOK && o != tool.OutcomeLost {
			t.Errorf("call %s ended as %q", id, o)
		}
	}
	return len(ran)
}
