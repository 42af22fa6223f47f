package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	// maxTasks bounds the tasks of all agents, those that have ended and are kept among them; see [frontend.Shares]. A call
	// that finds no place goes on within its request.
	maxTasks = 1000
	// maxTaskBytes bounds what is kept of the results of all tasks, and maxTaskResult one of them, in bytes.
	maxTaskBytes  = 64 << 20
	maxTaskResult = maxTaskBytes / 4
	// unknownTaskLife is how long a call without a deadline is taken to last.
	unknownTaskLife = time.Hour
	// defaultTaskKeep is how long a task can be asked for after its end, and after the latest moment at which the tool that
	// made it one can end.
	defaultTaskKeep = 10 * time.Minute
)

// The states of a task (SEP-2663). The last three are final.
const (
	taskWorking   = "working"
	taskAsking    = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// tasks are the calls that went on after their request was answered, and what became of them, until their agent has had
// time to ask. They are in memory only: their calls end with the daemon.
type tasks struct {
	keep time.Duration

	mu     sync.Mutex // guards everything below, and the tasks
	ending bool       // no call becomes a task any more
	byID   map[string]*task
	places frontend.Shares
	bytes  frontend.Shares // of outcomes
}

func newTasks(keep time.Duration) *tasks {
	return &tasks{
		keep: keep, byID: map[string]*task{},
		places: frontend.Shares{Max: maxTasks}, bytes: frontend.Shares{Max: maxTaskBytes},
	}
}

// task is one call that went on.
type task struct {
	id, agent string
	created   time.Time
	ttl, poll time.Duration
	cancel    context.CancelFunc // ends the call
	expiry    *time.Timer

	status  string
	message string
	updated time.Time
	ended   time.Time
	outcome json.RawMessage // the result of a completed task, the error of a failed one
	held    int64           // what it takes of the room for outcomes, in bytes
	asked   int             // how many things the client was asked for, ever
	open    map[string]*taskInput
}

func (t *task) final() bool { return t.status != taskWorking }

// begin makes a task of an agent's running call; nil if there is no place for it. The tool that made it one ends at until,
// if that is a time; the call may go on with others, and ends by cancel.
func (s *tasks) begin(agent string, poll time.Duration, until time.Time, cancel context.CancelFunc) *task {
	now := time.Now()
	life := unknownTaskLife
	if !until.IsZero() {
		life = until.Sub(now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending || !s.places.Take(agent, 1) {
		return nil
	}
	t := &task{
		id: rand.Text(), agent: agent, created: now, ttl: (life + s.keep).Round(time.Second), poll: poll, cancel: cancel,
		status: taskWorking, updated: now, open: map[string]*taskInput{},
	}
	t.expiry = time.AfterFunc(t.ttl, func() { s.expire(t) })
	s.byID[t.id] = t
	return t
}

// expire forgets a task whose time is over. One whose call goes on, as with another tool in it, is kept further.
func (s *tasks) expire(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.byID[t.id] != t:
	case t.final():
		s.dropLocked(t)
	default:
		s.last(t)
	}
}

// last makes a task last as long from now on as its agent may take to ask for it. A promise that was made is only ever made
// better (SEP-2663: "this value MAY change").
func (s *tasks) last(t *task) {
	age := time.Since(t.created)
	if age+s.keep > t.ttl {
		t.ttl = age + s.keep
		t.expiry.Reset(s.keep)
	}
}

// end notes how a task's call ended. What was cancelled stays so. Where an outcome is more than the agent's share of the
// room, its oldest ones go first.
func (s *tasks) end(t *task, status string, outcome json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[t.id] != t || t.final() {
		return
	}
	size := int64(len(outcome))
	fits := size <= maxTaskResult && s.bytes.Might(t.agent, size)
	for fits && !s.bytes.Fits(t.agent, size) {
		s.dropLocked(s.oldest(t.agent))
	}
	if fits && s.bytes.Take(t.agent, size) {
		t.held = size
	} else {
		status, outcome = taskCompleted, encodeResult(tool.Errorf(tool.ResultTooLarge,
			"the task has ended, but its result of %d bytes is more than can be kept now; look before you repeat it, and ask for less", size).Result(), true)
	}
	s.finish(t, status)
	t.outcome = outcome
	var failure jsonrpc.Error
	if status == taskFailed && json.Unmarshal(outcome, &failure) == nil {
		t.message = frontend.Clip(failure.Message, maxTaskMessage)
	}
}

// finish gives a task its last state.
func (s *tasks) finish(t *task, status string) {
	s.last(t)
	t.status, t.message, t.updated = status, "", time.Now()
	t.ended = t.updated
	clear(t.open)
}

// oldest is the task of an agent that ended first, of those that hold a result.
func (s *tasks) oldest(agent string) (oldest *task) {
	for _, t := range s.byID {
		if t.agent == agent && t.held > 0 && (oldest == nil || t.ended.Before(oldest.ended)) {
			oldest = t
		}
	}
	return oldest
}

func (s *tasks) dropLocked(t *task) {
	t.expiry.Stop()
	delete(s.byID, t.id)
	s.places.Leave(t.agent, 1)
	if t.held > 0 {
		s.bytes.Leave(t.agent, t.held)
	}
}

// cancelAll ends every task, and lets no call become one any more.
func (s *tasks) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	for _, t := range s.byID {
		if !t.final() {
			s.finish(t, taskCancelled)
			t.cancel()
		}
	}
}

// dropAll forgets every task, after their calls have ended.
func (s *tasks) dropAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.byID {
		s.dropLocked(t)
	}
}

// tell notes how far a task is.
func (s *tasks) tell(t *task, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if message != "" && !t.final() {
		t.message, t.updated = frontend.Clip(message, maxTaskMessage), time.Now()
	}
}

// maxTaskMessage bounds a task's status message, in bytes.
const maxTaskMessage = 2048

// errNoTask answers for a task that the agent does not have. Whether another has it is none of its business.
var errNoTask = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no such task, or it has expired; call the tool again if its result is still needed"}

// find is an agent's task.
func (s *tasks) find(agent, id string) (*task, error) {
	if t := s.byID[id]; t != nil && t.agent == agent {
		return t, nil
	}
	return nil, errNoTask
}

// seed is a task as the answer to the request that it came from.
func (s *tasks) seed(t *task) *taskView {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.seed()
}

// view is what an agent sees of its task.
func (s *tasks) view(agent, id string) (*taskView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.find(agent, id)
	if err != nil {
		return nil, err
	}
	v := t.seed()
	v.Type = "complete"
	switch {
	case t.status == taskCompleted:
		v.Result = t.outcome
	case t.status == taskFailed:
		v.Error = t.outcome
	case len(t.open) > 0:
		v.Status, v.Inputs = taskAsking, sdk.InputRequestMap{}
		for key, in := range t.open {
			v.Inputs[key] = in.request
		}
	}
	return v, nil
}

// cancelTask ends an agent's task, unless it has ended.
func (s *tasks) cancelTask(agent, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.find(agent, id)
	if err != nil || t.final() {
		return err
	}
	s.finish(t, taskCancelled)
	t.cancel()
	return nil
}
