package mcpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	// pollTime bounds one question how a task goes.
	pollTime = 30 * time.Second
	// maxPollFaults such questions in a row that fail give a task up, or tries to hand over one answer.
	maxPollFaults = 5
	// maxTaskInputs bounds how often one task may ask for something, and maxTaskInputBytes all that it asks, which is kept
	// until it is answered.
	maxTaskInputs, maxTaskInputBytes = 100, 1 << 20
)

// following is a call that its server made a task.
type following struct {
	s         *session
	host      *provider.Host
	id        string
	since     time.Time
	told      string // the last status message
	steps     int
	asked     map[string]*asked // by key; no key stands for two things (SEP-2663)
	asks      int               // how often it asked for something
	askBytes  int               // and for how much
	answering sync.WaitGroup
	answered  chan struct{} // the server has an answer, and may go on
	failed    chan error    // an answer could not be given
	ended     bool          // on the server's side
}

// asked is one thing that a task asked for.
type asked struct {
	withdraw context.CancelFunc
	given    atomic.Bool // there is an answer
}

// follow brings a call that its server made a task to its end.
func (s *session) follow(ctx context.Context, r *request, talk *conversation, t *taskState) (*outcome, error) {
	if r.host == nil || r.host.OnTask == nil {
		s.cancelTask(t.id)
		return nil, s.badTask(errors.New("it made a task of a call that did not allow one"))
	}
	if talk.taken != nil {
		talk.taken()
	}
	f := &following{
		s: s, host: r.host, id: t.id, since: time.Now(), asked: map[string]*asked{},
		answered: make(chan struct{}, 1), failed: make(chan error, 1),
	}
	r.host.OnTask(ctx, t.poll)
	o, err := f.run(ctx, t)
	if err != nil && !f.ended {
		s.cancelTask(t.id)
	}
	return o, err
}

// run asks how the task goes until it has ended.
func (f *following) run(ctx context.Context, t *taskState) (*outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer f.answering.Wait()
	defer cancel()
	wait := t.poll
	if t.status != taskWorking {
		wait = 0 // the answer to tools/call does not say what that needs
	}
	next := time.NewTimer(wait)
	defer next.Stop()
	for faults := 0; ; {
		select {
		case <-next.C:
		case <-f.answered:
			next.Reset(pollMin)
			continue
		case err := <-f.failed:
			return nil, err
		case <-f.s.line.done():
			return nil, &brokenError{sent: true, cause: f.s.line.err()}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		now, err := f.get(ctx)
		switch {
		case err == nil:
			t, faults = now, 0
			if o, err := f.take(ctx, t); o != nil || err != nil {
				return o, err
			}
		case ctx.Err() != nil:
			return nil, ctx.Err()
		default:
			if faults++; faults == maxPollFaults || f.lasting(err) {
				return nil, f.gaveUp(err)
			}
		}
		if t.ttl > 0 && time.Since(f.since) > t.ttl+t.poll {
			return nil, tool.Errorf(tool.OutcomeUnknown, "the task on server %q did not end within the %v that the server keeps it; "+
				"it may or may not have run, check before you repeat it", f.s.p.opts.Name, t.ttl)
		}
		next.Reset(t.poll)
	}
}

// lasting reports whether asking again is of no use.
func (f *following) lasting(err error) bool {
	var refused *rpcError
	var large *tooLargeError
	return f.s.line.ending() || tool.CodeOf(err) == tool.BadAnswer || errors.As(err, &large) ||
		errors.As(err, &refused) && (refused.code == jsonrpc.CodeInvalidParams || refused.code == jsonrpc.CodeMethodNotFound)
}

// gaveUp is the error of a task whose server no longer says how it goes.
func (f *following) gaveUp(err error) error {
	var broken *brokenError
	if tool.CodeOf(err) == tool.BadAnswer {
		return err
	}
	if errors.As(err, &broken) {
		return &brokenError{sent: true, cause: broken.cause}
	}
	return tool.Errorf(tool.OutcomeUnknown, "server %q no longer says how its task goes: %s; it may or may not have run, check before you repeat it",
		f.s.p.opts.Name, bounded(err.Error(), maxAgentText))
}

// get asks how the task goes.
func (f *following) get(ctx context.Context) (*taskState, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	raw, err := f.s.line.roundTrip(ctx, taskRequest(methodTaskGet, f.id, nil))
	if err != nil {
		return nil, err
	}
	t, err := readTask(raw)
	if err == nil && t.id != f.id {
		err = errors.New("asked for one task, it answered with another")
	}
	if err != nil {
		return nil, f.s.badTask(err)
	}
	return t, nil
}

// take acts on what the server says about the task. It returns the call's end, or nothing while the task goes on.
func (f *following) take(ctx context.Context, t *taskState) (*outcome, error) {
	switch t.status {
	case taskCompleted:
		f.ended = true
		o, err := readResult(t.result)
		if err == nil && (o.inputs != nil || o.task != nil) {
			err = errors.New("the result of the task is no result")
		}
		if err != nil {
			return nil, f.s.badTask(err)
		}
		return o, nil
	case taskFailed:
		f.ended = true
		return nil, t.failed()
	case taskCancelled:
		f.ended = true
		return nil, tool.Errorf(tool.Cancelled, "server %q cancelled the task; it may have had effects", f.s.p.opts.Name).With("task_status", taskCancelled)
	}
	if err := f.ask(ctx, t.inputs); err != nil {
		return nil, err
	}
	if t.message != f.told {
		f.told = t.message
		f.steps++
		f.host.Progress(tool.Progress{Done: float64(f.steps), Note: bounded(f.s.p.opts.Mask(t.message), maxAgentText)})
	}
	return nil, nil
}

// ask puts what the task asks for now to the caller, each thing by itself, and once. What the task does not ask for any
// more, without an answer, is withdrawn: its server goes on without.
func (f *following) ask(ctx context.Context, inputs map[string]provider.Input) error {
	for key, a := range f.asked {
		if _, still := inputs[key]; !still && !a.given.Load() {
			a.withdraw()
			delete(f.asked, key)
		}
	}
	for key, in := range inputs {
		if f.asked[key] != nil {
			continue
		}
		f.asks++
		f.askBytes += len(key) + len(in.Method) + len(in.Params)
		switch {
		case f.asks > maxTaskInputs:
			return tool.Errorf(tool.ToolFailed, "the task on server %q asked for input %d times without coming to an end; it was given up", f.s.p.opts.Name, maxTaskInputs)
		case f.askBytes > maxTaskInputBytes:
			return tool.Errorf(tool.ToolFailed, "the task on server %q asked for input with more than %d bytes of questions; it was given up", f.s.p.opts.Name, maxTaskInputBytes)
		}
		asking, withdraw := context.WithCancel(ctx)
		a := &asked{withdraw: withdraw}
		f.asked[key] = a
		f.answering.Go(func() {
			defer withdraw()
			if err := f.answer(ctx, asking, a, key, in); err != nil {
				select {
				case f.failed <- err:
				default: // one is enough
				}
				return
			}
			select {
			case f.answered <- struct{}{}:
			default:
			}
		})
	}
	return nil
}

// answer gets one answer of the caller, unless it is withdrawn, and hands it to the server.
func (f *following) answer(ctx, asking context.Context, a *asked, key string, in provider.Input) error {
	answers, err := fulfil(asking, f.host, map[string]provider.Input{key: in})
	switch {
	case err != nil && asking.Err() != nil && ctx.Err() == nil:
		return nil
	case err != nil:
		return err
	}
	a.given.Store(true)
	// A server that has an answer leaves it aside when it comes again (SEP-2663).
	for faults := 1; ; faults++ {
		_, err = f.s.line.roundTrip(ctx, taskRequest(methodTaskUpdate, f.id, answers))
		if err == nil || faults == maxPollFaults || f.lasting(err) || sleep(ctx, pollMin<<faults) != nil {
			break
		}
	}
	var refused *rpcError
	var broken *brokenError
	switch {
	case errors.As(err, &refused):
		return tool.Errorf(tool.ToolFailed, "server %q did not take an answer that its task had asked for: %s", f.s.p.opts.Name, bounded(refused.message, maxAgentText))
	case errors.As(err, &broken):
		return &brokenError{sent: true, cause: broken.cause}
	}
	return err
}

// taskRequest is a request about a task, with the answers that it brings.
func taskRequest(method, id string, answers []byte) *request {
	return &request{method: method, name: id, params: func(b *bytes.Buffer) error {
		b.WriteString(`"taskId":`)
		writeString(b, id)
		if answers != nil {
			b.WriteString(`,"inputResponses":`)
			b.Write(answers)
		}
		return nil
	}}
}

// cancelTask tells the server that nobody waits for a task any more. The call ends after that: a stop of the daemon waits
// for calls, and what is told beside them would not go out.
func (s *session) cancelTask(id string) {
	ctx, cancel := context.WithTimeout(s.line.ctx, cancelTime)
	defer cancel()
	if _, err := s.line.roundTrip(ctx, taskRequest(methodTaskCancel, id, nil)); err != nil {
		s.p.log.Debug("the server could not be told that a task is given up", "error", err)
	}
}

// badTask is the error of a task that is against the protocol.
func (s *session) badTask(err error) error {
	return tool.Errorf(tool.BadAnswer, "server %q answered against its protocol: %w; the call may have run", s.p.opts.Name, fmt.Errorf("tasks: %w", err))
}
