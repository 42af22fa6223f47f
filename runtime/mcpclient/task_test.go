package mcpclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// startTasks runs a provider of a server that makes tasks.
func startTasks(t *testing.T, change ...func(*mcpclient.Options)) (*running, *taskServer) {
	t.Helper()
	s := newTaskServer()
	r := startHTTP(t, s, change...)
	r.ready()
	return r, s
}

// letting is a host that lets go of calls that become tasks.
func letting() (*provider.Host, <-chan time.Duration) {
	became := make(chan time.Duration, 1)
	return &provider.Host{OnTask: func(_ context.Context, poll time.Duration) { became <- poll }}, became
}

func script(t testing.TB, s *taskScript) string {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const done = `"status":"completed","result":{"content":[{"z":1,"type":"text","text":"done"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"ID"}}}`

func TestACallThatBecameATaskEndsWithTheTask(t *testing.T) {
	r, s := startTasks(t)
	cases := map[string]struct {
		script taskScript
		want   string    // text of the result
		code   tool.Code // or of the error
		says   string
		tells  bool // the server that nobody waits any more
	}{
		"it works, and is done":                      {script: taskScript{Gets: []string{`"status":"working"`, done}}, want: "done"},
		"it was done before it was asked for":        {script: taskScript{Create: `"status":"completed"`, Gets: []string{done}}, want: "done"},
		"the tool failed":                            {script: taskScript{Gets: []string{`"status":"completed","result":{"content":[{"type":"text","text":"no"}],"isError":true}`}}, want: "no"},
		"it failed":                                  {script: taskScript{Gets: []string{`"status":"failed","error":{"code":-32001,"message":"boom","data":{"a":1}}`}}, code: tool.ToolFailed, says: "boom"},
		"it failed without an error":                 {script: taskScript{Gets: []string{`"status":"failed","statusMessage":"disk full"`}}, code: tool.ToolFailed, says: "disk full"},
		"the server cancelled it":                    {script: taskScript{Gets: []string{`"status":"cancelled"`}}, code: tool.Cancelled, says: "cancelled the task"},
		"an error on the way passes":                 {script: taskScript{Gets: []string{`ERROR{"code":-32603,"message":"busy"}`, `"status":"working"`, done}}, want: "done"},
		"errors that stay":                           {script: taskScript{Gets: []string{`ERROR{"code":-32603,"message":"busy"}`}}, code: tool.OutcomeUnknown, says: "busy", tells: true},
		"the server forgot it":                       {script: taskScript{Gets: []string{`ERROR{"code":-32602,"message":"no such task"}`}}, code: tool.OutcomeUnknown, says: "no such task", tells: true},
		"a status that does not exist":               {script: taskScript{Gets: []string{`"status":"resting"`}}, code: tool.BadAnswer, says: "resting", tells: true},
		"another task":                               {script: taskScript{Gets: []string{`"taskId":"other","status":"working"`}}, code: tool.BadAnswer, says: "another", tells: true},
		"a result that is none":                      {script: taskScript{Gets: []string{`"status":"completed","result":7`}}, code: tool.BadAnswer, says: "no JSON object"},
		"no result":                                  {script: taskScript{Gets: []string{`"status":"completed"`}}, code: tool.BadAnswer},
		"a result that is a task":                    {script: taskScript{Gets: []string{`"status":"completed","result":{"resultType":"task","taskId":"x","status":"working"}`}}, code: tool.BadAnswer},
		"questions that cannot be read":              {script: taskScript{Gets: []string{`"status":"input_required","inputRequests":[]`}}, code: tool.BadAnswer, tells: true},
		"an id that no header can hold":              {script: taskScript{Create: `"taskId":"a b","status":"working"`, Gets: []string{done}}, code: tool.BadAnswer, says: "visible"},
		"an id without end":                          {script: taskScript{Create: fmt.Sprintf(`"taskId":%q,"status":"working"`, strings.Repeat("x", 600)), Gets: []string{done}}, code: tool.BadAnswer},
		"it outlives the time that the server gives": {script: taskScript{Create: `"status":"working","ttlMs":1,"pollIntervalMs":1`, Gets: []string{`"status":"working","ttlMs":1,"pollIntervalMs":1`}}, code: tool.OutcomeUnknown, says: "did not end within", tells: true},
		"times that are none":                        {script: taskScript{Create: `"status":"working","ttlMs":-1,"pollIntervalMs":1`, Gets: []string{`"status":"working","ttlMs":null,"pollIntervalMs":1`, `"status":"working","ttlMs":99999999999999999999,"pollIntervalMs":1`, done}}, want: "done"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := r.on(t)
			host, became := letting()
			before := s.tellings("tasks/cancel")
			req := r.request("job", script(t, &c.script), host)
			if c.code == "" {
				if result, err := r.Invoke(t.Context(), req); err != nil || result.Text() != c.want {
					t.Errorf("got %v, %v", result, err)
				} else if result.Meta != nil {
					t.Errorf("the protocol's own _meta passed: %s", result.Meta)
				}
				<-became
				return
			}
			if err := r.fails(t.Context(), req, c.code); !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			if c.tells {
				s.hears(r, "tasks/cancel")
			} else if n := s.tellings("tasks/cancel"); n != before {
				t.Error("a task that had ended was cancelled")
			}
			s.mu.Lock()
			s.told = nil
			s.mu.Unlock()
		})
	}
}

func TestTheErrorOfATaskPassesAsItCame(t *testing.T) {
	r, _ := startTasks(t)
	host, _ := letting()
	e := r.fails(t.Context(), r.request("job", script(t, &taskScript{Gets: []string{`"status":"failed","error":{"code":-32001,"message":"boom","data":{"a":1}}`}}), host), tool.ToolFailed)
	want := &jsonrpc.Error{Code: -32001, Message: "boom", Data: json.RawMessage(`{"a":1}`)}
	if diff := cmp.Diff(want, e.Extra["task_error"]); diff != "" {
		t.Error(diff)
	}
}

func TestATaskThatNeverEndsEndsWithItsCall(t *testing.T) {
	cases := map[string]struct {
		gets string
		code tool.Code
		end  func(ctx context.Context) (context.Context, context.CancelFunc)
	}{
		"at its deadline": {`"status":"working"`, tool.Timeout, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return within(ctx, 300*time.Millisecond)
		}},
		"at its deadline, with a server silent": {`HANG`, tool.Timeout, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return within(ctx, 300*time.Millisecond)
		}},
		"when it is cancelled": {`"status":"working"`, tool.Cancelled, context.WithCancel},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, s := startTasks(t)
			host, became := letting()
			ctx, cancel := c.end(t.Context())
			defer cancel()
			if c.code == tool.Cancelled {
				let := host.OnTask
				host.OnTask = func(ctx context.Context, poll time.Duration) { let(ctx, poll); cancel() }
			}
			r.fails(ctx, r.request("job", script(t, &taskScript{Gets: []string{c.gets}}), host), c.code)
			<-became
			if s.tellings("tasks/cancel") != 1 { // a daemon that stops waits for calls, and for nothing beside them
				t.Error("the call ended before its server was told")
			}
			r.alive()
		})
	}
}

func TestTheIntervalOfAServerIsKeptWithinBounds(t *testing.T) {
	r, _ := startTasks(t)
	for members, want := range map[string]time.Duration{
		`"status":"completed"`:                             time.Second,
		`"status":"completed","pollIntervalMs":0`:          time.Second,
		`"status":"completed","pollIntervalMs":1`:          100 * time.Millisecond,
		`"status":"completed","pollIntervalMs":2500`:       2500 * time.Millisecond,
		`"status":"completed","pollIntervalMs":8640000000`: 30 * time.Second,
		`"status":"completed","pollIntervalMs":-5`:         time.Second,
		`"status":"completed","pollIntervalMs":2.5e3`:      2500 * time.Millisecond,
		`"status":"completed","pollIntervalMs":1e308`:      30 * time.Second,
		`"status":"completed","pollIntervalMs":1e999`:      30 * time.Second,
		`"status":"completed","pollIntervalMs":"2500"`:     time.Second,
	} {
		host, became := letting()
		r.text("job", script(t, &taskScript{Create: members, Gets: []string{done}}), host)
		if got := <-became; got != want {
			t.Errorf("%s: every %v, want %v", members, got, want)
		}
	}
}

// The server hears of the extension in the requests whose caller can come back for the result, and in no others.
func TestTasksAreDeclaredForTheCallsThatMayBecomeOne(t *testing.T) {
	r, s := startTasks(t)
	declared := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Contains(string(s.caps), `"io.modelcontextprotocol/tasks":{}`)
	}
	host, _ := letting()
	r.text("echo", `{}`, host)
	if !declared() {
		t.Error("not in a call that may")
	}
	r.text("echo", `{}`, &provider.Host{})
	if declared() {
		t.Error("in a call that may not")
	}
	e := r.fails(t.Context(), r.request("job", script(t, &taskScript{Gets: []string{done}}), &provider.Host{}), tool.BadAnswer)
	if !strings.Contains(e.Error(), "did not allow") {
		t.Error(e)
	}
	s.hears(r, "tasks/cancel")
}

func TestAServerThatTakesOneCallAtATimeTakesOthersWhileATaskRuns(t *testing.T) {
	r, _ := startTasks(t, func(o *mcpclient.Options) { o.Parallel = false })
	host, became := letting()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		r.fails(ctx, r.request("job", script(t, &taskScript{Gets: []string{`"status":"working"`}}), host), tool.Cancelled)
	})
	<-became
	r.alive()
	cancel()
	running.Wait()
}

func TestAServerThatGoesWhileATaskRunsLeavesItsOutcomeOpen(t *testing.T) {
	t.Run("a process", func(t *testing.T) {
		r := start(t, mcpclient.Options{Command: []string{self(t)}, Env: role("task"), Parallel: true})
		r.ready()
		host, became := letting()
		r.fails(t.Context(), r.request("job", script(t, &taskScript{Gets: []string{`"status":"working"`, "DIE"}}), host), tool.OutcomeUnknown)
		<-became
		r.ready()
		r.alive()
	})
	t.Run("over HTTP", func(t *testing.T) {
		server := serve(t, newTaskServer())
		r := start(t, mcpclient.Options{URL: server.URL, Parallel: true, ConnectTimeout: 2 * time.Second})
		r.ready()
		host, _ := letting()
		let := host.OnTask
		host.OnTask = func(ctx context.Context, poll time.Duration) {
			let(ctx, poll)
			server.CloseClientConnections()
			server.Close()
		}
		r.fails(t.Context(), r.request("job", script(t, &taskScript{Gets: []string{`"status":"working"`}}), host), tool.OutcomeUnknown)
	})
}

func TestHowFarATaskIsIsTold(t *testing.T) {
	r, _ := startTasks(t)
	host, _ := letting()
	var told []string
	host.OnProgress = func(p tool.Progress) { told = append(told, fmt.Sprintf("%g %s", p.Done, p.Note)) }
	half := `"status":"working","pollIntervalMs":1,"statusMessage":"half"`
	r.text("job", script(t, &taskScript{Gets: []string{half, half, `"status":"working","pollIntervalMs":1,"statusMessage":"more"`, done}}), host)
	if diff := cmp.Diff([]string{"1 half", "2 more"}, told); diff != "" {
		t.Error(diff)
	}
}

func TestNoHalfOfASecretIsLeftWhereATextIsCut(t *testing.T) {
	r, _ := startTasks(t, func(o *mcpclient.Options) {
		o.Mask = func(s string) string { return strings.ReplaceAll(s, "hunter22", "***") }
	})
	long := strings.Repeat("x", 2044) + "hunter22"
	host, _ := letting()
	var told []string
	host.OnProgress = func(p tool.Progress) { told = append(told, p.Note) }
	e := r.fails(t.Context(), r.request("job", script(t, &taskScript{Gets: []string{
		`"status":"working","statusMessage":"` + long + `"`, `"status":"failed","error":{"code":1,"message":"` + long + `"}`,
	}}), host), tool.ToolFailed)
	wire, ok := e.Extra["task_error"].(*jsonrpc.Error)
	if !ok || len(told) != 1 {
		t.Fatalf("%v, told %q", e.Extra, told)
	}
	for _, text := range []string{told[0], e.Message, wire.Message} {
		if strings.Contains(text, "hun") || len(text) < 2044 {
			t.Error(text)
		}
	}
}

func FuzzReadTask(f *testing.F) {
	f.Add([]byte(`{"taskId":"a","status":"working","ttlMs":1,"pollIntervalMs":2}`))
	f.Add([]byte(`{"taskId":"a","status":"input_required","inputRequests":{"k":{"method":"m"}},"ttlMs":null}`))
	f.Add([]byte(`{"taskId":"a","status":"failed","error":{"code":"x"}}`))
	f.Add([]byte(`{"resultType":"task","taskId":"\u0000"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return // checked when it comes in
		}
		if poll, err := mcpclient.ReadTask(raw); err == nil && (poll < 100*time.Millisecond || poll > 30*time.Second) {
			t.Errorf("%s: every %v", raw, poll)
		}
	})
}
