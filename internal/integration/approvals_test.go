package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// listen runs `hermesd approvals watch` until the test ends.
func (o *overseen) listen() {
	o.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "hermesd"), "approvals", "watch", "--json", "-c", o.config)
	out, err := cmd.StdoutPipe()
	if err != nil {
		o.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	go func() { // what it says is asked of `approvals list`
		for lines := bufio.NewScanner(out); lines.Scan(); {
		}
	}()
	o.t.Cleanup(func() {
		if err := cmd.Process.Kill(); err == nil {
			cmd.Wait() //nolint:errcheck // it was killed
		}
	})
}

// ask runs a command as an agent and returns the answer, also if a human is asked before.
func (o *overseen) ask(agent, line string) string {
	raw, err := json.Marshal(map[string]any{"name": "terminal", "arguments": map[string]any{"command": line}})
	if err != nil {
		o.t.Fatal(err)
	}
	return o.postAs(agent, raw)
}

type pending struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Rule      string          `json:"rule"`
	Choices   []string        `json:"choices"`
}

func (o *overseen) pending() []pending {
	o.t.Helper()
	out, errs, code := o.hermesd("approvals", "list", "--json")
	if code != 0 {
		o.t.Fatalf("approvals list: %s", errs)
	}
	var list []pending
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		o.t.Fatal(err)
	}
	return list
}

// question waits until a call whose command holds text is asked about.
func (o *overseen) question(text string) pending {
	o.t.Helper()
	var found pending
	eventually(o.t, "it is asked about "+text, func() bool {
		for _, p := range o.pending() {
			if strings.Contains(string(p.Arguments), text) {
				found = p
				return true
			}
		}
		return false
	})
	return found
}

// begin makes a call in the background.
func (o *overseen) begin(agent, line string) <-chan string {
	answer := make(chan string, 1)
	go func() { answer <- o.ask(agent, line) }()
	return answer
}

const attended = "  attended = true\n" + noGuard

// approved is a daemon with an attended agent and a short wait.
func approved(t *testing.T, more string) *overseen {
	return oversee(t, agentBlock("attended", attended)+agentBlock("colleague", attended)+"approvals {\n  wait = \"20s\"\n}\n"+more)
}

func (o *overseen) must(args ...string) string {
	o.t.Helper()
	out, errs, code := o.hermesd(args...)
	if code != 0 {
		o.t.Fatalf("hermesd %s: %s%s", strings.Join(args, " "), out, errs)
	}
	return out
}

func TestAHumanAnswersOnTheCommandLine(t *testing.T) {
	o := approved(t, "")
	o.watchAs("attended")

	t.Run("approved, it runs as it was shown", func(t *testing.T) {
		answer := o.begin("attended", "touch once; echo needs-a-human once")
		p := o.question("once")
		if !strings.Contains(p.Rule, "ask first (hermesd.hcl:") || len(p.Choices) != 4 {
			t.Errorf("the human sees %+v", p)
		}
		o.must("approvals", "approve", p.ID)
		if got := <-answer; !strings.Contains(got, "needs-a-human once") {
			t.Errorf("it did not run: %s", got)
		}
		if _, errs, code := o.hermesd("approvals", "approve", p.ID); code == 0 || !strings.Contains(errs, "settled already") {
			t.Errorf("it can be answered twice: %s", errs)
		}
	})
	t.Run("once is for one call: the same one is asked about again", func(t *testing.T) {
		answer := o.begin("attended", "touch once; echo needs-a-human once")
		o.must("approvals", "deny", o.question("once").ID, "--reason", "use the other system")
		if got := <-answer; !strings.Contains(got, "approval_denied") || !strings.Contains(got, "use the other system") {
			t.Errorf("the agent reads %s", got)
		}
	})
	t.Run("for the session, until it is revoked", func(t *testing.T) {
		answer := o.begin("attended", "echo needs-a-human session")
		o.must("approvals", "approve", "--session", o.question("session").ID)
		<-answer
		if got := o.ask("attended", "echo needs-a-human and more"); !strings.Contains(got, "needs-a-human and more") || strings.Contains(got, "error") {
			t.Errorf("the grant does not hold: %s", got)
		}
		answer = o.begin("colleague", "echo needs-a-human colleague")
		o.must("approvals", "deny", o.question("colleague").ID)
		<-answer
		var grants []struct {
			ID, Kind, Rule string
		}
		if err := json.Unmarshal([]byte(o.must("approvals", "grants", "--json")), &grants); err != nil || len(grants) != 1 || grants[0].Kind != "session" {
			t.Fatalf("%+v, %v", grants, err)
		}
		o.must("approvals", "revoke", grants[0].ID)
		answer = o.begin("attended", "echo needs-a-human revoked")
		o.must("approvals", "deny", o.question("revoked").ID)
		<-answer
	})
	t.Run("always, for such arguments", func(t *testing.T) {
		answer := o.begin("attended", "echo needs-a-human 1")
		o.must("approvals", "approve", "--always", "--pattern", `command="echo needs-a-human *"`, o.question("needs-a-human 1").ID)
		<-answer
		if got := o.ask("attended", "echo needs-a-human 2"); strings.Contains(got, "error") {
			t.Errorf("the grant does not hold: %s", got)
		}
		answer = o.begin("attended", "echo it needs-a-human 3")
		o.must("approvals", "deny", o.question("it needs-a-human 3").ID)
		<-answer
	})
	t.Run("what is gone, and what never was", func(t *testing.T) {
		for _, args := range [][]string{{"approve", "nosuch"}, {"deny", "nosuch"}, {"revoke", "nosuch"}} {
			if _, errs, code := o.hermesd(append([]string{"approvals"}, args...)...); code != 1 || !strings.Contains(errs, "not known") {
				t.Errorf("%v: %d, %s", args, code, errs)
			}
		}
	})
	records := o.must("audit", "query", "--kind", "answered", "--json", "--limit", "100")
	if !strings.Contains(records, "by the command line") || !strings.Contains(records, "approval_denied") {
		t.Errorf("the answers are not on record: %s", records)
	}
}

// watchAs makes sure that somebody listens to an agent's questions.
func (o *overseen) watchAs(agent string) {
	o.t.Helper()
	o.listen()
	eventually(o.t, "somebody listens", func() bool {
		answer := o.begin(agent, "echo needs-a-human probe")
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case got := <-answer:
				return !strings.Contains(got, "nobody_asked")
			case <-tick.C:
			}
			for _, p := range o.pending() {
				o.hermesd("approvals", "deny", p.ID)
			}
		}
	})
}

// elicited connects an agent whose client can be asked, and counts the questions.
func (o *overseen) elicited(version string, answer func(*sdk.ElicitParams) map[string]any) *sdk.ClientSession {
	o.t.Helper()
	return o.as("attended", version, &sdk.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: answer(r.Params)}, nil
		},
	})
}

func TestAHumanAnswersInTheClient(t *testing.T) {
	o := approved(t, "")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			var asked []string
			s := o.elicited(version, func(p *sdk.ElicitParams) map[string]any {
				asked = append(asked, p.Message)
				if strings.Contains(p.Message, "2 calls wait") {
					return map[string]any{"choice_1": "once", "choice_2": "deny", "reason": "one is enough"}
				}
				return map[string]any{"choice": "once"}
			})
			got, isError := call(t, s, "terminal", map[string]any{"command": "echo needs-a-human alone"})
			if isError || !strings.Contains(got, "needs-a-human alone") {
				t.Errorf("it did not run: %s", got)
			}
			if len(asked) != 1 || !strings.Contains(asked[0], "ask first (hermesd.hcl:") || !strings.Contains(asked[0], "needs-a-human alone") {
				t.Errorf("asked %q", asked)
			}

			asked = nil
			name := func(n int) string { return fmt.Sprintf("%s-%d", version, n) }
			entry := func(line string) any {
				return map[string]any{"name": "terminal", "arguments": map[string]any{"command": line}}
			}
			got, _ = call(t, s, "tool_call", map[string]any{"calls": []any{
				entry("echo x >> free-" + name(0)), entry("echo x >> " + name(1) + "; echo needs-a-human"), entry("touch " + name(2) + "; echo needs-a-human"),
			}})
			if len(asked) != 1 {
				t.Errorf("asked %d times: %q", len(asked), asked)
			}
			if !strings.Contains(got, `"success_count":2`) || !strings.Contains(got, "approval_denied") || !strings.Contains(got, "one is enough") {
				t.Errorf("the batch ended as %s", got)
			}
			for file, want := range map[string]string{"free-" + name(0): "x\n", name(1): "x\n", name(2): ""} {
				if text := o.read(file); text != want {
					t.Errorf("%s holds %q, want %q: an entry ran twice or not at all", file, text, want)
				}
			}
		})
	}
}

// read is the content of a file that commands have written, "" if there is none.
func (o *overseen) read(name string) string {
	o.t.Helper()
	raw, err := os.ReadFile(filepath.Join(o.folder, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		o.t.Fatal(err)
	}
	return string(raw)
}

func TestWhatWasGrantedForASessionEndsWithIt(t *testing.T) {
	o := approved(t, "")
	s := o.elicited("2025-11-25", func(*sdk.ElicitParams) map[string]any { return map[string]any{"choice": "session"} })
	if got, isError := call(t, s, "terminal", map[string]any{"command": "echo needs-a-human"}); isError {
		t.Fatal(got)
	}
	if got := o.must("approvals", "grants", "--json"); !strings.Contains(got, `"kind": "session"`) {
		t.Fatalf("nothing is granted: %s", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the grant has ended", func() bool { return strings.TrimSpace(o.must("approvals", "grants", "--json")) == "[]" })
}

func TestAnEndlessStreamOfMalformedRequestsEnds(t *testing.T) {
	o := approved(t, "")
	var got string
	for range 8 {
		got = o.postAs("slow", []byte(`{"name":"tool_call","arguments":{"calls":[]}}`))
	}
	if !strings.Contains(got, "loop_blocked") {
		t.Errorf("the eighth is answered with %s", got)
	}
	if got := o.postAs("slow", []byte(`{"name":"greet","arguments":{"name":"Ada"}}`)); !strings.Contains(got, "Hello, Ada") {
		t.Errorf("a request that is none of them: %s", got)
	}
}
