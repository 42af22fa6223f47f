package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// job is a tool whose work may go on as a task.
type job struct {
	// at begins it, and is all of it for a client that takes no tasks.
	at handler
	// work is what a task does.
	work func(ctx context.Context, t *task, r *mcp.CallToolRequest) (*mcp.CallToolResult, error)
	// required jobs are refused to clients that take no tasks.
	required bool
	// quick says, if it is not nil, that there is nothing left to do for a task.
	quick func(r *mcp.CallToolRequest) bool
}

func (j *job) short(r *mcp.CallToolRequest) bool { return j.quick != nil && j.quick(r) }

func jobs() map[string]*job {
	begun := always(text("begun"))
	sure := mcp.InputRequestMap{"confirm": form("Delete it?", `{"type":"object","properties":{"confirm":{"type":"boolean"}},"required":["confirm"]}`)}
	who := mcp.InputRequestMap{"user_name": form("What is your name?", nameForm)}
	return map[string]*job{
		"slow_compute": {at: func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if seconds(r) == 0 {
				return compute(ctx, r)
			}
			return withoutTasks(compute)(ctx, r)
		}, work: func(ctx context.Context, t *task, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			t.say("computing")
			return compute(ctx, r)
		}, quick: func(r *mcp.CallToolRequest) bool { return seconds(r) == 0 }},
		"failing_job": {at: begun, required: true, work: func(ctx context.Context, _ *task, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if err := rest(ctx, 200*time.Millisecond); err != nil {
				return nil, err
			}
			r := text("the job did not succeed")
			r.IsError = true
			return r, nil
		}},
		"protocol_error_job": {at: begun, required: true, work: func(context.Context, *task, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errBroken
		}},
		"confirm_delete": {at: withoutTasks((&dialog{requests: sure, done: deleted}).handle), work: func(ctx context.Context, t *task, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			a, err := t.ask(ctx, sure)
			if err != nil {
				return nil, err
			}
			said, _ := deleted(a)
			return text("%s", said), nil
		}},
		"multi_input": {at: begun, required: true, work: func(ctx context.Context, t *task, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			a, err := t.ask(ctx, mcp.InputRequestMap{"first": form("A name?", nameForm), "second": form("Another?", nameForm)})
			if err != nil {
				return nil, err
			}
			return text("%s and %s", a.name("first"), a.name("second")), nil
		}},
		"test_tool_with_task": {at: (&dialog{requests: who, state: "named", done: func(a answers) (string, bool) {
			n := a.name("user_name")
			return "Hello, " + n, n != ""
		}}).handle, required: true, work: func(_ context.Context, _ *task, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text("Hello, %s!", answers(r.Params.InputResponses).name("user_name")), nil
		}},
	}
}

// withoutTasks is the whole of a job for clients that take no tasks.
func withoutTasks(whole handler) handler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if takesTasks(r.ClientCapabilities()) {
			return text("begun"), nil
		}
		return whole(ctx, r)
	}
}

func deleted(a answers) (string, bool) {
	confirmed, ok := a.accepted("confirm", "confirm").(bool)
	return fmt.Sprintf("deleted: %v", confirmed), ok
}

func seconds(r *mcp.CallToolRequest) float64 {
	var args struct{ Seconds float64 }
	if json.Unmarshal(r.Params.Arguments, &args) != nil {
		return 0
	}
	return args.Seconds
}

// compute takes its time.
func compute(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	s := seconds(r)
	return text("computed for %g seconds", s), rest(ctx, time.Duration(s*float64(time.Second)))
}

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
