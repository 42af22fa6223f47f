package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// asking is a job that asks for two names at once, and then for one more.
func asking(ctx context.Context, host *provider.Host) (*tool.Result, error) {
	type said struct {
		text string
		err  error
	}
	answers := make(chan said, 2)
	for _, message := range []string{"one?", "two?"} {
		go func() {
			a, err := host.Ask(ctx, provider.Question{Message: message})
			answers <- said{message + string(a.Content), err}
		}()
	}
	var all []string
	for range 2 {
		s := <-answers
		if s.err != nil {
			return nil, s.err
		}
		all = append(all, s.text)
	}
	a, err := host.Ask(ctx, provider.Question{Message: "three?"})
	if err != nil {
		return nil, err
	}
	return tool.TextResult(strings.Join(append(all, a.Action), " ")), nil
}

func TestWhatATaskAsksForIsAnsweredByUpdates(t *testing.T) {
	e := serve(t, providertest.New("jobs", job("jobs_ask", asking)))
	c := e.tasker(t, frontendtest.Token)
	id := c.call("jobs_ask", `{}`).TaskID
	both := c.until(id, "two questions", func(a *taskAnswer) bool { return len(a.InputRequests) == 2 })
	keys := map[string]string{}
	for key, in := range both.InputRequests {
		keys[in.Params.Message] = key
		if in.Method != "elicitation/create" {
			t.Errorf("%s asks by %s", key, in.Method)
		}
	}
	if both.Status != "input_required" {
		t.Errorf("the status is %s", both.Status)
	}
	for name, answers := range map[string]string{
		"an answer of another kind":   `{%q:{"roots":[]}}`,
		"an action that is none":      `{%q:{"action":"maybe"}}`,
		"no object":                   `{%q:7}`,
		"an object that says nothing": `{%q:{}}`,
	} {
		if a := c.update(id, fmt.Sprintf(answers, keys["one?"])); a.refused == nil || a.refused.Code != -32602 {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a := c.update(id, `{"nothing":{"ignored":true}}`); a.ResultType != "complete" {
		t.Errorf("an answer to nothing: %+v", a.refused)
	}
	accept := `{%q:{"action":"accept","content":{"n":1}}}`
	if a := c.update(id, fmt.Sprintf(accept, keys["one?"])); a.ResultType != "complete" || a.Status != "" {
		t.Errorf("the first answer: %+v", a)
	}
	if a := c.get(id); a.Status != "input_required" || len(a.InputRequests) != 1 || a.InputRequests[keys["two?"]].Method == "" {
		t.Errorf("after the first: %+v", a)
	}
	if a := c.update(id, fmt.Sprintf(accept, keys["one?"])); a.ResultType != "complete" {
		t.Errorf("the first answer again: %+v", a)
	}
	c.update(id, fmt.Sprintf(accept, keys["two?"]))
	third := c.until(id, "the third question", func(a *taskAnswer) bool { return a.Status == "input_required" })
	for key, in := range third.InputRequests {
		if in.Params.Message != "three?" || key == keys["one?"] || key == keys["two?"] {
			t.Errorf("%s asks %s", key, in.Params.Message)
		}
		c.update(id, fmt.Sprintf(`{%q:{"action":"decline"}}`, key))
	}
	done := c.status(id, "completed")
	for _, part := range []string{`one?{\"n\":1}`, `two?{\"n\":1}`, "decline"} {
		if !strings.Contains(string(done.Result), part) {
			t.Errorf("%s lacks %s", done.Result, part)
		}
	}
}

func TestAQuestionOfATaskThatNobodyAnswersEndsIt(t *testing.T) {
	e := serveWith(t, &mcp.Options{AskTimeout: time.Millisecond}, providertest.New("jobs", job("jobs_ask", asking)))
	c := e.tasker(t, frontendtest.Token)
	if a := c.status(c.call("jobs_ask", `{}`).TaskID, "completed"); !strings.Contains(string(a.Result), "silence is not consent") {
		t.Errorf("%+v %s", a, a.Result)
	}
}

// A call asks first, and becomes a task when it is answered.
func TestACallAsksBeforeItIsATask(t *testing.T) {
	e := serve(t, providertest.New("jobs", answering("jobs_run", func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
		a, err := req.Host.Ask(ctx, provider.Question{Message: "who?"})
		if err != nil {
			return nil, err
		}
		req.Host.OnTask(ctx, time.Second)
		return tool.TextResult("for " + string(a.Content)), nil
	})))
	c := e.tasker(t, frontendtest.Token)
	first := c.call("jobs_run", `{}`)
	if first.ResultType != "input_required" || first.TaskID != "" {
		t.Fatalf("first: %+v", first)
	}
	second := c.ask("tools/call", "jobs_run", `"name":"jobs_run","arguments":{}`+answered(first.RequestState))
	if second.ResultType != "task" || second.RequestState != "" || len(second.InputRequests) > 0 {
		t.Fatalf("second: %+v %+v", second, second.refused)
	}
	if a := c.status(second.TaskID, "completed"); !strings.Contains(string(a.Result), `for {\"x\":1}`) {
		t.Errorf("%s", a.Result)
	}
}

// Several tools in one call share its task, whatever each of them does with the client before and after.
func TestACallOfSeveralToolsIsOneTask(t *testing.T) {
	begin := make(chan struct{})
	e := serve(t, providertest.New("jobs",
		answering("jobs_ask", func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
			var all []string
			for range 2 {
				a, err := req.Host.Ask(ctx, provider.Question{Message: "who?"})
				if err != nil {
					return nil, err
				}
				all = append(all, a.Action)
			}
			return tool.TextResult(strings.Join(all, ", then ")), nil
		}),
		answering("jobs_run", func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
			<-begin
			req.Host.OnTask(ctx, time.Second)
			req.Host.OnTask(ctx, time.Second)
			return tool.TextResult("ran"), nil
		}),
	))
	c := e.tasker(t, frontendtest.Token)
	const both = `"name":"tool_call","arguments":{"calls":[{"name":"jobs_ask","arguments":{}},{"name":"jobs_run","arguments":{}}]}`
	first := c.ask("tools/call", "tool_call", both)
	if first.ResultType != "input_required" {
		t.Fatalf("first: %+v %+v", first, first.refused)
	}
	close(begin) // while the question is with the client
	second := c.ask("tools/call", "tool_call", both+answered(first.RequestState))
	id := second.TaskID
	if second.ResultType == "input_required" { // the second question was quicker than the task
		second = c.ask("tools/call", "tool_call", both+answered(second.RequestState))
		id = second.TaskID
	} else {
		asking := c.until(id, "the second question", func(a *taskAnswer) bool { return a.Status == "input_required" })
		for key := range asking.InputRequests {
			c.update(id, fmt.Sprintf(`{%q:{"action":"accept","content":{}}}`, key))
		}
	}
	if second.ResultType != "task" {
		t.Fatalf("second: %+v %+v", second, second.refused)
	}
	done := c.status(id, "completed")
	for _, part := range []string{"accept, then accept", "ran"} {
		if !strings.Contains(string(done.Result), part) {
			t.Errorf("%s lacks %s", done.Result, part)
		}
	}
}

// A server asks by what its client, hermesd, declared; the agent's client may be able to do less.
func TestAClientIsAskedOnlyWhatItCanAnswer(t *testing.T) {
	var in provider.Input // of the call that runs
	ask := func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
		if req.Host.OnTask != nil {
			req.Host.OnTask(ctx, time.Second)
		}
		_, err := req.Host.OnInputs(ctx, map[string]provider.Input{"k": in})
		return tool.TextResult("asked"), err
	}
	e := serve(t, providertest.New("jobs", answering("jobs_ask", ask)))
	const extension = `"extensions":{"io.modelcontextprotocol/tasks":{}}`
	tools := `{"messages":[],"maxTokens":1,"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`
	for name, c := range map[string]struct {
		caps, method, params string
		asked                bool
	}{
		"a form":                              {`"elicitation":{"form":{}}`, "elicitation/create", `{"message":"m","requestedSchema":{"type":"object"}}`, true},
		"a link, where there are forms only":  {`"elicitation":{"form":{}}`, "elicitation/create", `{"mode":"url","message":"m","url":"https://x.example/"}`, false},
		"a link without its mode":             {`"elicitation":{"form":{}}`, "elicitation/create", `{"message":"m","url":"https://x.example/"}`, false},
		"a link":                              {`"elicitation":{"url":{}}`, "elicitation/create", `{"mode":"url","message":"m","url":"https://x.example/"}`, true},
		"a form, where there are links only":  {`"elicitation":{"url":{}}`, "elicitation/create", `{"message":"m"}`, false},
		"a form, where there is no human":     {`"sampling":{}`, "elicitation/create", `{"message":"m"}`, false},
		"sampling without tools":              {`"sampling":{}`, "sampling/createMessage", `{"messages":[],"maxTokens":1}`, true},
		"sampling with tools, where are none": {`"sampling":{}`, "sampling/createMessage", tools, false},
		"sampling with tools":                 {`"sampling":{"tools":{}}`, "sampling/createMessage", tools, true},
		"a kind that is none":                 {`"sampling":{}`, "novelty/create", `{}`, false},
	} {
		in = provider.Input{Method: c.method, Params: json.RawMessage(c.params)}
		for _, client := range []string{"{" + c.caps + "}", "{" + c.caps + "," + extension + "}"} {
			agent := e.tasker(t, frontendtest.Token)
			agent.caps = client
			a := agent.call("jobs_ask", `{}`)
			if id := a.TaskID; id != "" {
				if a = agent.until(id, "a question or an end", func(a *taskAnswer) bool { return a.Status != "working" }); c.asked {
					agent.cancel(id)
				}
			}
			text := string(a.Result)
			if len(a.Content) > 0 {
				text = a.Content[0].Text
			}
			if asked := len(a.InputRequests) == 1; asked != c.asked || !asked && !strings.Contains(text, `unsupported`) {
				t.Errorf("%s, %s: asked %v, %s", name, client, asked, text)
			}
		}
	}
}
