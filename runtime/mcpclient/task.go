package mcpclient

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/provider"
)

// The extension by which a server of 2026-07-28 may answer tools/call with a task, which it works on after that
// (SEP-2663), and its methods.
const (
	tasksExtension   = "io.modelcontextprotocol/tasks"
	methodTaskGet    = "tasks/get"
	methodTaskUpdate = "tasks/update"
	methodTaskCancel = "tasks/cancel"
)

const (
	// A task is asked for as often as its server suggests, within pollMin and pollMax; pollUnsaid where it suggests nothing.
	pollMin, pollUnsaid, pollMax = 100 * time.Millisecond, time.Second, 30 * time.Second
	// maxTaskID bounds the id of a task, in bytes.
	maxTaskID = 512
	// maxTime bounds what a server says of times; it is as good as for ever.
	maxTime = 365 * 24 * time.Hour
)

// The states of a task.
const (
	taskWorking   = "working"
	taskAsking    = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// taskState is what a server says about a task.
type taskState struct {
	id, status, message string
	ttl                 time.Duration // from its creation; 0 for none
	poll                time.Duration
	inputs              map[string]provider.Input
	result, failure     json.RawMessage
}

// readTask takes a task apart, as the answer to tools/call or to tasks/get.
func readTask(raw json.RawMessage) (*taskState, error) {
	t := &taskState{poll: pollUnsaid}
	var inputs json.RawMessage
	if !rawjson.Members(raw, func(key string, value json.RawMessage) {
		switch key {
		case "taskId":
			t.id, _ = rawjson.String(value)
		case "status":
			t.status, _ = rawjson.String(value)
		case "statusMessage":
			t.message, _ = rawjson.String(value)
		case "ttlMs":
			t.ttl = millis(value)
		case "pollIntervalMs":
			t.poll = millis(value)
		case "inputRequests":
			inputs = value
		case "result":
			t.result = value
		case "error":
			t.failure = value
		}
	}) {
		return nil, errors.New("the task is no JSON object")
	}
	if t.poll == 0 {
		t.poll = pollUnsaid
	}
	t.poll = min(max(t.poll, pollMin), pollMax)
	if !isTaskID(t.id) {
		return nil, fmt.Errorf("the task's id is not 1 to %d visible ASCII characters", maxTaskID)
	}
	switch t.status {
	case taskWorking, taskCompleted, taskFailed, taskCancelled:
	case taskAsking:
		o := &outcome{}
		if err := o.readInputs(inputs); err != nil {
			return nil, err
		}
		t.inputs = o.inputs
	default:
		return nil, fmt.Errorf("the task has the status %q, which does not exist", bounded(t.status, 40))
	}
	return t, nil
}

// failed is the error that a failed task ended with.
func (t *taskState) failed() *rpcError {
	e := &rpcError{}
	if _, err := (reply{failure: t.failure}).unpack(); !errors.As(err, &e) || e.code == 0 {
		e.code = jsonrpc.CodeInternalError
	}
	e.message = cmp.Or(e.message, t.message)
	e.task = true
	return e
}

// isTaskID reports whether a text can name a task in a header, too.
func isTaskID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= maxTaskID
}

// millis is a duration on the wire, however its number is written, and at most maxTime; 0 for what is none.
func millis(raw json.RawMessage) time.Duration {
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || n <= 0 {
		return 0
	}
	return time.Duration(min(n*float64(time.Millisecond), float64(maxTime)))
}
