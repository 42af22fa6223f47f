package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK has no tasks (SEP-2663). Here they stand before it: a call of a job is answered with a task, whose work goes on.

const tasksExtension = "io.modelcontextprotocol/tasks"

// taskParams are the params of tasks/get, tasks/update and tasks/cancel.
type taskParams struct {
	mcp.ParamsBase
	ID     string               `json:"taskId"`
	Inputs mcp.InputResponseMap `json:"inputResponses"`
}

// taskResult is a task on the wire, or an acknowledgement.
type taskResult struct {
	mcp.ResultBase
	Type    string              `json:"resultType"`
	ID      string              `json:"taskId,omitempty"`
	Status  string              `json:"status,omitempty"`
	Message string              `json:"statusMessage,omitempty"`
	Created string              `json:"createdAt,omitempty"`
	Updated string              `json:"lastUpdatedAt,omitempty"`
	TTL     int64               `json:"ttlMs,omitempty"`
	Poll    int64               `json:"pollIntervalMs,omitempty"`
	Inputs  mcp.InputRequestMap `json:"inputRequests,omitempty"`
	Result  mcp.Result          `json:"result,omitempty"`
	Error   *jsonrpc.Error      `json:"error,omitempty"`
}

// tasks are those of this server.
type tasks struct {
	jobs map[string]*job

	mu  sync.Mutex
	all map[string]*task
}

// task is one of them.
type task struct {
	of     *tasks
	cancel context.CancelFunc
	state  taskResult // guarded by the mutex of the tasks
	given  mcp.InputResponseMap
	heard  chan struct{} // has something when answers have come
}

// addTasks offers jobs, and the methods to look after them.
func addTasks(s *mcp.Server, jobs map[string]*job) {
	x := &tasks{jobs: jobs, all: map[string]*task{}}
	for name, j := range jobs {
		add(s, name, noArguments, j.at)
	}
	for method, serve := range map[string]func(*task, *taskParams) *taskResult{"tasks/get": (*task).get, "tasks/update": (*task).update, "tasks/cancel": (*task).stop} {
		err := mcp.AddReceivingCustomMethod(s, method, func(_ context.Context, _ *mcp.ServerSession, p *taskParams) (*taskResult, error) {
			x.mu.Lock()
			defer x.mu.Unlock()
			t, ok := x.all[p.ID]
			if !ok {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no such task"}
			}
			return serve(t, p), nil
		})
		if err != nil {
			panic(err)
		}
	}
	s.AddReceivingMiddleware(x.receive)
}

// receive makes tasks of calls, for clients that declared the extension in the request.
func (x *tasks) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch r := req.(type) {
		case *mcp.ServerRequest[*taskParams]:
			if !takesTasks(r.ClientCapabilities()) {
				return nil, errUndeclared
			}
		case *mcp.CallToolRequest:
			j := x.jobs[r.Params.Name]
			switch {
			case j == nil:
			case takesTasks(r.ClientCapabilities()):
				return x.call(ctx, next, method, r, j)
			case j.required:
				return nil, errUndeclared
			}
		}
		return next(ctx, method, req)
	}
}

func takesTasks(caps *mcp.ClientCapabilities) bool {
	return caps != nil && caps.Extensions[tasksExtension] != nil
}

var errUndeclared = &jsonrpc.Error{
	Code: mcp.CodeMissingRequiredClientCapabilities, Message: "tasks are needed",
	Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`),
}

// call has a tool begin, and makes a task of what is left to do. A tool that asks first, or that is done at once, is no
// task.
func (x *tasks) call(ctx context.Context, next mcp.MethodHandler, method string, r *mcp.CallToolRequest, j *job) (mcp.Result, error) {
	begun, err := next(ctx, method, r)
	if result, ok := begun.(*mcp.CallToolResult); err != nil || !ok || result.NeedsInput() || j.work == nil || j.short(r) {
		return begun, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	now := time.Now().UTC().Format(time.RFC3339)
	t := &task{of: x, cancel: cancel, given: mcp.InputResponseMap{}, heard: make(chan struct{}, 1), state: taskResult{
		Type: "complete", ID: rand.Text(), Status: "working", Created: now, Updated: now, TTL: 60_000, Poll: 100,
	}}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all[t.state.ID] = t
	created := t.state
	created.Type = "task"
	go func() {
		defer cancel()
		result, err := j.work(ctx, t, r)
		t.end(result, err)
	}()
	return &created, nil
}

// end settles the task, unless it was cancelled.
func (t *task) end(result *mcp.CallToolResult, err error) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.state.Status == "cancelled" {
		return
	}
	t.state.Status, t.state.Result, t.state.Inputs = "completed", result, nil
	if err != nil {
		t.state.Status, t.state.Result = "failed", nil
		t.state.Error = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
}

func (t *task) get(*taskParams) *taskResult {
	now := t.state
	return &now
}

func (t *task) update(p *taskParams) *taskResult {
	open := mcp.InputRequestMap{}
	for id, asked := range t.state.Inputs {
		if answer, ok := p.Inputs[id]; ok {
			t.given[id] = answer
		} else {
			open[id] = asked
		}
	}
	if t.state.Inputs = open; len(open) == 0 && t.state.Status == "input_required" {
		t.state.Status, t.state.Inputs = "working", nil
		t.heard <- struct{}{}
	}
	return &taskResult{Type: "complete"}
}

func (t *task) stop(*taskParams) *taskResult {
	if t.state.Status == "working" || t.state.Status == "input_required" {
		t.state.Status, t.state.Inputs = "cancelled", nil
		t.cancel()
	}
	return &taskResult{Type: "complete"}
}

// ask puts requests to the client, and waits for all answers.
func (t *task) ask(ctx context.Context, requests mcp.InputRequestMap) (answers, error) {
	t.of.mu.Lock()
	t.state.Status, t.state.Inputs = "input_required", requests
	t.of.mu.Unlock()
	select {
	case <-t.heard:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return answers(t.given), nil
}

// say tells how far the task is.
func (t *task) say(text string) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.state.Message = text
}

var errBroken = errors.New("the job broke off")
