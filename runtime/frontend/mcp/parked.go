package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// maxParked bounds the questions of all agents' calls that wait for a client to come back with an answer; see [frontend.Shares].
const maxParked = 1000

// questionKey is the name of an input request that stands alone in a result.
const questionKey = "question"

// parked keeps calls that run on while their client asks its human. From protocol 2026-07-28 a server cannot ask within
// a request: the request ends with the question and a state, and the client sends it again with the answer and that
// state. The tool's call must not run twice for that, so it waits here, between the two requests.
type parked struct {
	timeout time.Duration
	tasks   *tasks // ask by their own way
	runs    sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]*question // by request state
	room    frontend.Shares      // a place for each question, from before it is asked
}

func newParked(timeout time.Duration, tasks *tasks) *parked {
	return &parked{timeout: timeout, tasks: tasks, waiting: map[string]*question{}, room: frontend.Shares{Max: maxParked}}
}

// run is one request of a client that asks by round trips.
type run struct {
	agent     string
	digest    [sha256.Size]byte // of what is asked for
	cancel    context.CancelFunc
	handover  *handover                            // of a call that may become a task; else nil
	reach     atomic.Pointer[reach]                // of the request that is open now
	asking    sync.Mutex                           // one question at a time
	early     atomic.Pointer[sdk.InputResponseMap] // answers that came before the question; they count once
	attend    func()                               // called before it asks: somebody is to wait for that, see serveHere
	questions chan *question
	done      chan struct{}
	result    any // the outcome, after done
}

// outcome is how a request ended.
type outcome[T any] struct {
	value T
	err   error
}

// work is what a request wants done.
type work[T any] = func(ctx context.Context, host *provider.Host) (T, error)

// serve runs or continues a request until it ends, asks or becomes a task; then the second result says so.
func serve[T any](ctx context.Context, a *agentServer, reach *reach, do work[T]) (outcome[T], *interim) {
	if !reach.outlasted() {
		ctx, cancel := bounded(ctx, a.owner.events.base(reach.client.ID(), a.base))
		defer cancel()
		value, err := do(ctx, reach.host())
		return outcome[T]{value, err}, nil
	}
	p := a.owner.parked
	if reach.round.state != "" {
		r := p.resume(a, reach)
		if r == nil {
			return outcome[T]{err: errStaleState}, nil
		}
		return await[T](ctx, p, r)
	}
	r, working, host := newRun(ctx, p, a, reach, func() {})
	p.runs.Go(func() { runHere(working, r, host, do) })
	return await[T](ctx, p, r)
}

// serveHere is serve for one who can answer a request from any goroutine: the work stays in the caller's, which spares another
// for the many requests that just end. answer is called once, from a goroutine of its own if the work goes on meanwhile.
func serveHere[T any](ctx context.Context, a *agentServer, reach *reach, do work[T], answer func(outcome[T], *interim)) {
	if !reach.outlasted() || reach.round.state != "" {
		answer(serve(ctx, a, reach, do))
		return
	}
	p := a.owner.parked
	p.runs.Add(1)
	defer p.runs.Done()
	var attended sync.Once
	var r *run
	r, working, host := newRun(ctx, p, a, reach, func() {
		attended.Do(func() { go func() { answer(await[T](ctx, p, r)) }() })
	})
	stop := context.AfterFunc(ctx, r.attend) // which ends the work
	runHere(working, r, host, do)
	stop()
	attended.Do(func() { answer(await[T](ctx, p, r)) })
}

// await waits as next does, and says how the request is to be answered.
func await[T any](ctx context.Context, p *parked, r *run) (outcome[T], *interim) {
	if q := r.next(ctx, p); q != nil {
		return outcome[T]{}, &interim{requests: q.requests, state: q.state}
	}
	if t := r.handover.now(); t != nil {
		if ctx.Err() != nil {
			r.cancel() // nobody hears of the task
		}
		return outcome[T]{}, &interim{task: p.tasks.seed(t)}
	}
	result, ok := r.result.(outcome[T])
	if !ok { // the digest binds a state to its method
		return outcome[T]{err: tool.Errorf(tool.Internal, "a request was continued as one of another kind")}, nil
	}
	return result, nil
}

// next waits until a run ends, becomes a task or asks, and returns what it asks. It ends a run whose request has ended.
func (r *run) next(ctx context.Context, p *parked) *question {
	for {
		select {
		case <-r.done:
			return nil
		case q := <-r.questions:
			if p.hold(q) {
				return q
			}
		case <-r.handover.began():
			return nil
		case <-ctx.Done():
			r.cancel()
			<-r.done
			return nil
		}
	}
}

// newRun prepares the work of a request. It outlives the request, and ends at the latest with its agent or the front end.
func newRun(ctx context.Context, p *parked, a *agentServer, reach *reach, attend func()) (*run, context.Context, *provider.Host) {
	ctx, cancel := bounded(context.WithoutCancel(ctx), a.base)
	r := &run{
		agent: a.agent.Load().Name, digest: reach.round.digest, cancel: cancel, handover: reach.handover, attend: attend,
		questions: make(chan *question), done: make(chan struct{}),
	}
	r.reach.Store(reach)
	if len(reach.round.answers) > 0 {
		r.early.Store(&reach.round.answers)
	}
	host := p.host(r, reach.caps)
	if h := r.handover; h != nil {
		h.cancel = cancel
		host.OnTask = func(ctx context.Context, poll time.Duration) {
			h.begin(ctx, poll)
			attend()
		}
	}
	return r, ctx, host
}

// runHere does the work of a request.
func runHere[T any](ctx context.Context, r *run, host *provider.Host, do work[T]) {
	defer r.cancel()
	defer close(r.done)
	value, err := do(ctx, host)
	r.result = outcome[T]{value, err}
}

// host is what a run asks and tells through: whatever request of its client is open.
func (p *parked) host(r *run, caps *sdk.ClientCapabilities) *provider.Host {
	h := &provider.Host{
		OnProgress: func(step tool.Progress) { p.progress(r, step) },
		OnLog:      func(line tool.LogRecord) { r.reach.Load().sendLog(line) },
		OnInputs: func(ctx context.Context, inputs map[string]provider.Input) (map[string]json.RawMessage, error) {
			return p.askAll(ctx, r, inputs)
		},
	}
	one := func(method string) func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
			answers, err := p.askAll(ctx, r, map[string]provider.Input{questionKey: {Method: method, Params: params}})
			if err == nil && answers[questionKey] == nil {
				err = tool.Errorf(tool.Unsupported, "the agent's client gave no answer")
			}
			return answers[questionKey], err
		}
	}
	if caps.Elicitation != nil {
		h.OnAsk = func(ctx context.Context, q provider.Question) (provider.Answer, error) { return p.ask(ctx, r, q) }
	}
	if caps.Sampling != nil {
		h.OnSample = one(methodSample)
	}
	if caps.RootsV2 != nil {
		list := one(methodRoots)
		h.OnRoots = func(ctx context.Context) (json.RawMessage, error) { return list(ctx, nil) }
	}
	return h
}

// progress tells the client of a step: of its open request, or by the task that its call has become.
func (p *parked) progress(r *run, step tool.Progress) {
	if t := r.handover.now(); t != nil {
		p.tasks.tell(t, step.Note)
		return
	}
	r.reach.Load().sendProgress(step)
}

// wait returns when no request runs any more.
func (p *parked) wait() { p.runs.Wait() }

func digestOf(method, name string, arguments []byte) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(method+"\x00"+name+"\x00"), arguments...))
}
