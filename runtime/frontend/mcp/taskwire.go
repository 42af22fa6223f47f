package mcp

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

// tasksExtension is the name of the extension by which a call may be answered with a task (SEP-2663).
const tasksExtension = "io.modelcontextprotocol/tasks"

// The methods of the extension.
const (
	methodTaskGet    = "tasks/get"
	methodTaskUpdate = "tasks/update"
	methodTaskCancel = "tasks/cancel"
)

// taskParams are the params of all three methods.
type taskParams struct {
	sdk.ParamsBase
	TaskID string                     `json:"taskId"`
	Inputs map[string]json.RawMessage `json:"inputResponses"`
}

// taskView is a task on the wire: as it began, or with what its state adds.
type taskView struct {
	Type    string              `json:"resultType"`
	ID      string              `json:"taskId"`
	Status  string              `json:"status"`
	Message string              `json:"statusMessage,omitempty"`
	Created string              `json:"createdAt"`
	Updated string              `json:"lastUpdatedAt"`
	TTL     int64               `json:"ttlMs"`
	Poll    int64               `json:"pollIntervalMs,omitempty"`
	Inputs  sdk.InputRequestMap `json:"inputRequests,omitempty"`
	Result  json.RawMessage     `json:"result,omitempty"`
	Error   json.RawMessage     `json:"error,omitempty"`
	Meta    sdk.Meta            `json:"_meta,omitempty"`
}

// seed is what every view of a task has.
func (t *task) seed() *taskView {
	const format = "2006-01-02T15:04:05.000Z07:00" // RFC 3339, to the millisecond
	return &taskView{
		Type: "task", ID: t.id, Status: t.status, Message: t.message,
		Created: t.created.UTC().Format(format), Updated: t.updated.UTC().Format(format),
		TTL: t.ttl.Milliseconds(), Poll: t.poll.Milliseconds(),
	}
}

// taskResult is a task as the answer to a request.
type taskResult struct {
	sdk.Result // what the SDK adds: _meta
	view       *taskView
}

// MarshalJSON implements [json.Marshaler].
func (r *taskResult) MarshalJSON() ([]byte, error) {
	v := *r.view
	v.Meta = r.GetMeta()
	return tool.JSON(&v)
}

// taskAck is the answer to tasks/update and tasks/cancel.
type taskAck struct {
	sdk.ResultBase
	Type string `json:"resultType"`
}

// serveTasks makes the SDK server know the methods of the extension; what answers them is the middleware.
func (a *agentServer) serveTasks() {
	for _, method := range []string{methodTaskGet, methodTaskUpdate, methodTaskCancel} {
		err := sdk.AddReceivingCustomMethod(a.sdk, method, func(context.Context, *sdk.ServerSession, *taskParams) (*taskAck, error) {
			return nil, errPastMiddleware
		})
		if err != nil {
			a.owner.options.Logger.Error("a method of tasks is not offered", "method", method, "error", err)
		}
	}
}

// task answers a method of the extension.
func (a *agentServer) task(method string, req *sdk.ServerRequest[*taskParams]) (sdk.Result, error) {
	if req.ProtocolVersion() < stateless {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + " needs protocol " + stateless}
	}
	if !takesTasks(req.ClientCapabilities()) {
		return nil, errNoTasks
	}
	if req.Params == nil || req.Params.TaskID == "" {
		return nil, errNoTask
	}
	var err error
	agent, id, tasks := a.agent.Load().Name, req.Params.TaskID, a.owner.tasks
	switch method {
	case methodTaskGet:
		view, err := tasks.view(agent, id)
		if err != nil {
			return nil, err
		}
		return &taskResult{&sdk.ResultBase{}, view}, nil
	case methodTaskUpdate:
		err = tasks.answer(agent, id, req.Params.Inputs)
	default:
		err = tasks.cancelTask(agent, id)
	}
	if err != nil {
		return nil, err
	}
	return &taskAck{Type: "complete"}, nil
}

// takesTasks reports whether a request may be answered with a task, or ask for one.
func takesTasks(caps *sdk.ClientCapabilities) bool {
	return caps != nil && caps.Extensions[tasksExtension] != nil
}

// errNoTasks answers a request for a task by a client that did not declare the extension in it.
var errNoTasks = &jsonrpc.Error{
	Code: sdk.CodeMissingRequiredClientCapabilities, Message: "declare the extension " + tasksExtension + " in the capabilities of this request",
	Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`),
}

// namesTask reports whether a request for a task names it in the header that routes it, too; otherwise it answers the
// request (SEP-2663, "Routing Headers"). Other requests are none of its business.
func namesTask(w http.ResponseWriter, h http.Header, body json.RawMessage) bool {
	var method, params, id json.RawMessage
	rawjson.Members(body, func(key string, value json.RawMessage) {
		switch key {
		case "method":
			method = value
		case "params":
			params = value
		}
	})
	switch name, _ := rawjson.String(method); name {
	case methodTaskGet, methodTaskUpdate, methodTaskCancel:
	default:
		return true
	}
	rawjson.Members(params, func(key string, value json.RawMessage) {
		if key == "taskId" {
			id = value
		}
	})
	if task, ok := rawjson.String(id); ok && task != h.Get(nameHeader) {
		refuse(w, idOf(body), sdk.CodeHeaderMismatch, "the header %s is not the request's taskId; send the same in both", nameHeader)
		return false
	}
	return true
}

// taskEnding is how a call ended as the end of a task: one of the protocol's errors, a cancellation by the server, both of
// which only a provider's error tells, or a result of the tool, which may be an error, too.
func taskEnding(call *frontend.Tried) (status string, outcome json.RawMessage) {
	var failure any
	if e := call.Failure; e != nil {
		if e.Extra["task_status"] == taskCancelled {
			return taskCancelled, nil
		}
		failure = e.Extra["task_error"]
		if missing := missingCapability(e); failure == nil && missing != nil {
			failure = missing
		}
	}
	if failure != nil {
		if raw, err := tool.JSON(failure); err == nil {
			return taskFailed, raw
		}
	}
	whole, err := newCallResult(&sdk.CallToolResult{}, call.Result, true).MarshalJSON()
	if err != nil {
		whole = encodeResult(tool.Errorf(tool.BadAnswer, "the result cannot be read; tell the operator").Result(), true)
	}
	return taskCompleted, whole
}
