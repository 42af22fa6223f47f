package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

const tasksCaps = `{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// taskAnswer is what a client reads of an answer about tasks.
type taskAnswer struct {
	ResultType, TaskID, Status, StatusMessage, CreatedAt, LastUpdatedAt, RequestState string
	TTLMs, PollIntervalMs                                                             int64
	InputRequests                                                                     map[string]struct {
		Method string
		Params struct{ Message string }
	}
	Content       []struct{ Text string }
	IsError       bool
	Result, Error json.RawMessage

	refused *taskRefusal // the protocol's error instead
}

type taskRefusal struct {
	Code    int64
	Message string
	Data    json.RawMessage
	http    int
}

// tasker sends the requests of a client.
type tasker struct {
	t    *testing.T
	post func(method, name, body string) (status int, message []byte)
	caps string
}

// over HTTP, as an agent.
func (e *endpoint) tasker(t *testing.T, token string) *tasker {
	return &tasker{t: t, caps: tasksCaps, post: func(method, name, body string) (int, []byte) {
		resp := e.post(t, body, map[string]string{"Authorization": "Bearer " + token, "Mcp-Protocol-Version": newer, "Mcp-Method": method, "Mcp-Name": name})
		messages := readMessages(t, resp)
		return resp.StatusCode, messages[len(messages)-1]
	}}
}

// ask sends a request and reads its answer.
func (c *tasker) ask(method, name, members string) *taskAnswer {
	c.t.Helper()
	status, raw := c.post(method, name, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":%s},%s}}`, method, newer, c.caps, members))
	var m struct {
		ID     int
		Result taskAnswer
		Error  *taskRefusal
	}
	if err := json.Unmarshal(raw, &m); err != nil || m.ID != 7 {
		c.t.Fatalf("%s: %v", raw, err)
	}
	if m.Error != nil {
		m.Error.http = status
		return &taskAnswer{refused: m.Error}
	}
	return &m.Result
}

func (c *tasker) call(name, arguments string) *taskAnswer {
	c.t.Helper()
	return c.ask("tools/call", name, fmt.Sprintf(`"name":%q,"arguments":%s`, name, arguments))
}

func (c *tasker) get(id string) *taskAnswer {
	c.t.Helper()
	return c.ask("tasks/get", id, fmt.Sprintf(`"taskId":%q`, id))
}

func (c *tasker) cancel(id string) *taskAnswer {
	c.t.Helper()
	return c.ask("tasks/cancel", id, fmt.Sprintf(`"taskId":%q`, id))
}

func (c *tasker) update(id, answers string) *taskAnswer {
	c.t.Helper()
	return c.ask("tasks/update", id, fmt.Sprintf(`"taskId":%q,"inputResponses":%s`, id, answers))
}

// until asks for a task until it is as wanted.
func (c *tasker) until(id, what string, ok func(*taskAnswer) bool) *taskAnswer {
	c.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(10 * time.Second); ; {
		a := c.get(id)
		if a.refused != nil || ok(a) {
			return a
		}
		select {
		case <-tick.C:
		case <-deadline:
			c.t.Fatalf("waited in vain for %s: %+v", what, a)
		}
	}
}

func (c *tasker) status(id, want string) *taskAnswer {
	c.t.Helper()
	return c.until(id, want, func(a *taskAnswer) bool { return a.Status == want })
}

// job is a tool that becomes a task, if it may, and ends as it is told.
func job(name string, work func(ctx context.Context, host *provider.Host) (*tool.Result, error)) providertest.Tool {
	return answering(name, func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
		if req.Host.OnTask != nil {
			req.Host.OnTask(ctx, 250*time.Millisecond)
		}
		return work(ctx, req.Host)
	})
}

// held is a job that ends with "done" when it is released, or with its context.
func held(name string) (providertest.Tool, chan<- struct{}, <-chan error) {
	release, ended := make(chan struct{}), make(chan error, 1)
	return job(name, func(ctx context.Context, host *provider.Host) (*tool.Result, error) {
		host.Progress(tool.Progress{Done: 1, Note: "under way"})
		select {
		case <-release:
			return &tool.Result{Content: []tool.Content{tool.Content(`{"type":"text","text":"a < b"}`)}, Meta: json.RawMessage(`{"own":1}`)}, nil
		case <-ctx.Done():
			ended <- ctx.Err()
			return tool.TextResult("too late"), nil
		}
	}), release, ended
}

// streamed is a client on a stream.
func (e *endpoint) streamed(t *testing.T) *tasker {
	conn := stream(t, e)
	lines := bufio.NewReader(conn)
	return &tasker{t: t, caps: tasksCaps, post: func(_, _, body string) (int, []byte) {
		go io.WriteString(conn, body+"\n")
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return 0, []byte(line)
	}}
}

func TestACallThatBecomesATaskIsAnsweredWithIt(t *testing.T) {
	ways := map[string]struct {
		client func(*endpoint, *testing.T) *tasker
		name   string
		args   string
		text   string // in the result
	}{
		"over HTTP":          {func(e *endpoint, t *testing.T) *tasker { return e.tasker(t, frontendtest.Token) }, "jobs_run", `{}`, `"text":"a < b"`},
		"on a stream":        {func(e *endpoint, t *testing.T) *tasker { return e.streamed(t) }, "jobs_run", `{}`, `"text":"a < b"`},
		"through the bridge": {func(e *endpoint, t *testing.T) *tasker { return e.tasker(t, frontendtest.Token) }, "tool_call", `{"name":"jobs_run","arguments":{}}`, `a < b`},
		"served by the SDK": {func(e *endpoint, t *testing.T) *tasker {
			c := e.tasker(t, frontendtest.Token)
			c.post = func(method, name, body string) (int, []byte) {
				resp := e.post(t, body, map[string]string{"Content-Type": "application/json; charset=utf-8", "Mcp-Protocol-Version": newer, "Mcp-Method": method, "Mcp-Name": name})
				messages := readMessages(t, resp)
				return resp.StatusCode, messages[len(messages)-1]
			}
			return c
		}, "jobs_run", `{}`, `"text":"a < b"`},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			tool, release, _ := held("jobs_run")
			e := serve(t, providertest.New("jobs", tool))
			c := way.client(e, t)
			created := c.call(way.name, way.args)
			if created.ResultType != "task" || created.TaskID == "" || created.Status != "working" || created.PollIntervalMs != 250 ||
				created.TTLMs < time.Minute.Milliseconds() || created.Result != nil || created.RequestState != "" {
				t.Fatalf("created: %+v, refused %+v", created, created.refused)
			}
			for _, at := range []string{created.CreatedAt, created.LastUpdatedAt} {
				if when, err := time.Parse(time.RFC3339, at); err != nil || time.Since(when).Abs() > time.Minute {
					t.Errorf("time %q: %v", at, err)
				}
			}
			working := c.until(created.TaskID, "a message", func(a *taskAnswer) bool { return a.StatusMessage != "" })
			if working.ResultType != "complete" || working.Status != "working" || working.StatusMessage != "under way" || working.TTLMs != created.TTLMs {
				t.Errorf("working: %+v", working)
			}
			close(release)
			done := c.status(created.TaskID, "completed")
			if done.StatusMessage != "" {
				t.Errorf("it is done and still %q", done.StatusMessage)
			}
			if result := string(done.Result); !strings.Contains(result, way.text) || !strings.Contains(result, `"resultType":"complete"`) || done.Error != nil {
				t.Errorf("completed: %+v %s", done, result)
			}
			if again := c.get(created.TaskID); string(again.Result) != string(done.Result) {
				t.Errorf("a second time: %+v", again)
			}
			if a := c.cancel(created.TaskID); a.ResultType != "complete" || a.Status != "" || c.get(created.TaskID).Status != "completed" {
				t.Errorf("cancelled when it had ended: %+v", a)
			}
		})
	}
}

func TestHowATaskEnds(t *testing.T) {
	cases := map[string]struct {
		result                *tool.Result
		err                   error
		status, result2, err2 string
	}{
		"with a tool's error":                {result: &tool.Result{Content: []tool.Content{tool.Text("no")}, IsError: true}, status: "completed", result2: `"isError":true`},
		"with an error of hermesd":           {err: tool.Errorf(tool.OutcomeUnknown, "it broke"), status: "completed", result2: `outcome_unknown`},
		"with an error of the protocol":      {err: tool.Errorf(tool.ToolFailed, "it failed").With("task_error", &jsonrpc.Error{Code: -32001, Message: "boom", Data: json.RawMessage(`1`)}), status: "failed", err2: `{"code":-32001,"message":"boom","data":1}`},
		"for want of a capability":           {err: tool.Errorf(tool.Unsupported, "sampling").With("required_capabilities", json.RawMessage(`{"sampling":{}}`)), status: "failed", err2: `{"code":-32021,"message":"sampling","data":{"requiredCapabilities":{"sampling":{}}}}`},
		"cancelled by the server":            {err: tool.Errorf(tool.Cancelled, "the server did").With("task_status", "cancelled"), status: "cancelled"},
		"cancelled, as a tool says":          {result: &tool.Result{Content: []tool.Content{tool.Text(`{"code":"cancelled","task_status":"cancelled"}`)}, IsError: true}, status: "completed", result2: "task_status"},
		"failed, as a tool says":             {result: &tool.Result{Content: []tool.Content{tool.Text(`{"task_error":{"code":1,"message":"m"}}`)}, IsError: true}, status: "completed", result2: "task_error"},
		"for want of what a tool wants":      {result: &tool.Result{Content: []tool.Content{tool.Text(`{"required_capabilities":{"sampling":{}}}`)}, IsError: true}, status: "completed", result2: "required_capabilities"},
		"with a result that is no JSON":      {result: &tool.Result{Content: []tool.Content{tool.Content(`{"type":`)}}, status: "completed", result2: `bad_answer`},
		"with a tool's text like an error's": {result: tool.TextResult(`{"task_error":{"code":1}}`), status: "completed", result2: `task_error`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := serve(t, providertest.New("jobs", job("jobs_run", func(context.Context, *provider.Host) (*tool.Result, error) { return c.result, c.err })))
			client := e.tasker(t, frontendtest.Token)
			got := client.status(client.call("jobs_run", `{}`).TaskID, c.status)
			if got.Status != c.status || !strings.Contains(string(got.Result), c.result2) || (got.Result == nil) != (c.result2 == "") {
				t.Errorf("got %+v, result %s", got, got.Result)
			}
			if (got.StatusMessage != "") != (c.status == "failed") {
				t.Errorf("the message is %q", got.StatusMessage)
			}
			if diff := cmp.Diff(c.err2, string(got.Error)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyThoseWhoTakeTasksGetThem(t *testing.T) {
	e := serve(t, providertest.New("jobs", job("jobs_run", func(context.Context, *provider.Host) (*tool.Result, error) { return tool.TextResult("plain"), nil })))
	c := e.tasker(t, frontendtest.Token)
	for _, caps := range []string{noCaps, allCaps, `{"extensions":{"io.modelcontextprotocol/tasks":null}}`} {
		c.caps = caps
		if a := c.call("jobs_run", `{}`); a.ResultType != "complete" || a.TaskID != "" || a.Content[0].Text != "plain" {
			t.Errorf("%s: %+v", caps, a)
		}
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			a := c.ask(method, "x", `"taskId":"x","inputResponses":{}`)
			want := &taskRefusal{-32021, "", json.RawMessage(`{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`), http.StatusBadRequest}
			if a.refused == nil || a.refused.Code != want.Code || string(a.refused.Data) != string(want.Data) || a.refused.http != want.http {
				t.Errorf("%s: %+v", method, a.refused)
			}
		}
	}
	if got := text(t, call(t, e.connect(t, older, nil), "jobs_run", nil)); got != "plain" {
		t.Error(got)
	}
	c.caps = tasksCaps
	for _, method := range []string{"tasks/list", "tasks/result"} {
		if a := c.ask(method, "", `"taskId":"x"`); a.refused == nil || a.refused.Code != -32601 || a.refused.http != http.StatusNotFound {
			t.Errorf("%s: %+v", method, a.refused)
		}
	}
}

func TestTheExtensionIsDeclaredToWhoCanUseIt(t *testing.T) {
	e := serve(t, providertest.New("jobs"))
	for version, want := range map[string]bool{older: false, newer: true} {
		s := e.connect(t, version, nil)
		if _, got := s.InitializeResult().Capabilities.Extensions["io.modelcontextprotocol/tasks"]; got != want {
			t.Errorf("%s: declared %v", version, got)
		}
	}
}
