package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// round is one request of a 2026-07-28 client that carries questions to its human and back by itself.
type round struct {
	agent, session, command, more string
}

type roundAnswer struct {
	ResultType    string
	RequestState  string
	IsError       bool
	Content       []struct{ Text string }
	InputRequests map[string]json.RawMessage
}

func (r *roundAnswer) text() string {
	var all []string
	for _, c := range r.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n")
}

func (o *overseen) round(r round) roundAnswer {
	o.t.Helper()
	args, err := json.Marshal(map[string]string{"command": r.command})
	if err != nil {
		o.t.Fatal(err)
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"hermesd/session":%q},"name":"terminal","arguments":%s%s}}`, r.session, args, r.more)
	req, err := http.NewRequest(http.MethodPost, o.url+"/mcp", strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "terminal",
	} {
		req.Header.Set(k, v)
	}
	response, err := (&http.Client{Transport: authorized{token(r.agent)}, Timeout: patience}).Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer response.Body.Close()
	var m struct {
		Result roundAnswer
		Error  struct{ Message string }
	}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if raw := strings.TrimPrefix(lines.Text(), "data: "); strings.HasPrefix(raw, "{") {
			if err := json.Unmarshal([]byte(raw), &m); err != nil {
				o.t.Fatalf("%v: %s", err, raw)
			}
		}
	}
	if m.Error.Message != "" {
		m.Result.Content = append(m.Result.Content, struct{ Text string }{m.Error.Message})
	}
	return m.Result
}

func brought(state, choice string) string {
	return fmt.Sprintf(`,"requestState":%q,"inputResponses":{"question":{"action":"accept","content":{"choice":%q}}}`, state, choice)
}

func TestAnApprovalThatAClientBringsIsForItsCallOnly(t *testing.T) {
	o := approved(t, "")
	ask := round{"attended", "s1", "echo x >> ran; echo needs-a-human", ""}
	first := o.round(ask)
	if first.ResultType != "input_required" || first.RequestState == "" || !strings.Contains(string(first.InputRequests["question"]), "ask first (hermesd.hcl:") {
		t.Fatalf("the question: %+v", first)
	}
	state := first.RequestState
	other := func(change func(*round)) round {
		r := ask
		r.more = brought(state, "once")
		change(&r)
		return r
	}
	flipped := []byte(state)
	flipped[len(flipped)/2] ^= 1
	for name, r := range map[string]round{
		"one byte of the arguments": other(func(r *round) { r.command = strings.Replace(r.command, "x", "y", 1) }),
		"another agent":             other(func(r *round) { r.agent = "colleague" }),
		"another session":           other(func(r *round) { r.session = "s2" }),
		"a changed state":           other(func(r *round) { r.more = brought(string(flipped), "once") }),
		"a state of nobody's":       other(func(r *round) { r.more = brought("abc.def", "once") }),
	} {
		if got := o.round(r); !strings.Contains(got.text(), "approval_void") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	ask.more = brought(state, "once")
	if got := o.round(ask); got.IsError || !strings.Contains(got.text(), "needs-a-human") {
		t.Errorf("the call that was approved: %+v", got)
	}
	if got := o.round(ask); !strings.Contains(got.text(), "approval_void") {
		t.Errorf("replayed: %+v", got)
	}
	if got := o.read("ran"); got != "x\n" {
		t.Errorf("it ran as %q", got)
	}
	ask.more = ""
	again := o.round(ask)
	if again.ResultType != "input_required" || again.RequestState == state {
		t.Errorf("the same call once more is not asked about anew: %+v", again)
	}
	ask.more = fmt.Sprintf(`,"requestState":%q`, again.RequestState) // the human closed the question
	if got := o.round(ask); !strings.Contains(got.text(), "approval_timeout") {
		t.Errorf("a question that was closed: %+v", got)
	}
}

func TestACallThatWaitsTooLongGoesOnLater(t *testing.T) {
	o := oversee(t, agentBlock("attended", attended)+"approvals {\n  wait = \"1s\"\n}\n")
	o.watchAs("attended")
	line := "echo x >> late; echo needs-a-human late"
	got := o.ask("attended", line)
	if !strings.Contains(got, "approval_pending") || !strings.Contains(got, `\"retryable\":true`) {
		t.Fatalf("it does not say that a human is still being asked: %s", got)
	}
	p := o.question("late")
	o.must("approvals", "approve", p.ID)
	if got := o.ask("attended", line); !strings.Contains(got, "needs-a-human late") || strings.Contains(got, "error") {
		t.Errorf("the identical call does not use the answer: %s", got)
	}
	if o.read("late") != "x\n" {
		t.Errorf("it ran as %q", o.read("late"))
	}
	if got := o.ask("attended", line); !strings.Contains(got, "approval_pending") {
		t.Errorf("the answer is used twice: %s", got)
	}
}

func TestNobodyWhoCouldAnswerIsSaidAtOnce(t *testing.T) {
	o := approved(t, "")
	began := time.Now()
	if got := o.ask("attended", "echo needs-a-human"); !strings.Contains(got, "nobody_asked") || !strings.Contains(got, "nobody listens") {
		t.Errorf("without a listener: %s", got)
	}
	s := o.elicited("2025-11-25", func(*sdk.ElicitParams) map[string]any { return map[string]any{} })
	if got, _ := call(t, s, "terminal", map[string]any{"command": "echo needs-a-human"}); !strings.Contains(got, "nobody_asked") {
		t.Errorf("a client that answers nothing: %s", got)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
}
