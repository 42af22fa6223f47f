package mcp

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

// handover is how a call that runs becomes a task, which it does when its provider says so ([provider.Host]). A call of a
// client that takes no tasks has none.
type handover struct {
	tasks  *tasks
	agent  string
	cancel context.CancelFunc // ends the call

	mu     sync.Mutex
	task   *task
	became chan struct{} // closed when there is a task
}

// offerTasks lets a call become a task, if its client takes tasks.
func (r *reach) offerTasks(a *agentServer) {
	if r.newer() && takesTasks(r.caps) {
		r.handover = &handover{tasks: a.owner.tasks, agent: a.agent.Load().Name, became: make(chan struct{})}
	}
}

// begin makes the call a task. One that is a task already, as where several tools run in one call, stays it; where there is
// no place for another, the call goes on within its request.
func (h *handover) begin(ctx context.Context, poll time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.task != nil {
		return
	}
	until, _ := ctx.Deadline()
	if h.task = h.tasks.begin(h.agent, poll, until, h.cancel); h.task != nil {
		close(h.became)
	}
}

// began is closed when the call has become a task.
func (h *handover) began() <-chan struct{} {
	if h == nil {
		return nil
	}
	return h.became
}

// now is the task that the call has become, or nil.
func (h *handover) now() *task {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.task
}

// end notes how the call ended, if it has become a task. cancelled says that it was ended, whatever it returned.
func (h *handover) end(cancelled bool, call *frontend.Tried) {
	t := h.now()
	if t == nil {
		return
	}
	if cancelled {
		h.tasks.end(t, taskCancelled, nil)
		return
	}
	if call.Result == nil {
		call = &frontend.Tried{Result: tool.Errorf(tool.NobodyAsked, "a part of the call needs a human's approval, which a task cannot ask for; call that tool alone").Result()}
	}
	status, outcome := taskEnding(call)
	h.tasks.end(t, status, outcome)
}

// interim answers a request whose call has not ended: with what the client is to be asked before it comes again, or with
// the task that the call has become.
type interim struct {
	requests sdk.InputRequestMap
	state    string
	task     *taskView
}

// result is the answer, with what the SDK adds.
func (i *interim) result(added sdk.Result) interface {
	sdk.Result
	json.Marshaler
} {
	if i.task != nil {
		return &taskResult{added, i.task}
	}
	return &questionResult{added, i.requests, i.state}
}
