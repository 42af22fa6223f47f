package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// maxParked bounds the calls that wait for a client to come back with an answer.
const maxParked = 1000

// questionKey is the name of the one input request that a result carries.
const questionKey = "question"

// parked keeps calls that run on while their client asks its human. From protocol 2026-07-28 a server cannot ask within
// a request: the request ends with the question and a state, and the client sends it again with the answer and that
// state. The tool's call must not run twice for that, so it waits here, between the two requests.
type parked struct {
	timeout time.Duration
	runs    sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]*question // by request state
}

func newParked(timeout time.Duration) *parked {
	return &parked{timeout: timeout, waiting: map[string]*question{}}
}

// run is one call of a client that asks by round trips.
type run struct {
	agent     string
	digest    [sha256.Size]byte // of name and arguments: a state fits no other call
	cancel    context.CancelFunc
	reach     atomic.Pointer[reach] // of the request that is open now
	asking    sync.Mutex            // one question at a time
	questions chan *question
	done      chan struct{}
	result    *tool.Result // after done
}

// question is what a run waits for.
type question struct {
	run    *run
	params *sdk.ElicitParams
	answer chan provider.Answer // takes one
	state  string               // while it is with the client
}

// serve runs or continues a call until it ends or asks; then the second result is the question.
func (p *parked) serve(ctx context.Context, a *agentServer, reach *reach) (*tool.Result, *sdk.CallToolResult) {
	var r *run
	if reach.req.Params.RequestState == "" {
		r = p.begin(ctx, a, reach)
	} else {
		var err *tool.Error
		if r, err = p.resume(a, reach); err != nil {
			return err.Result(), nil
		}
	}
	select {
	case <-r.done:
		return r.result, nil
	case q := <-r.questions:
		return nil, p.hold(q)
	case <-ctx.Done():
		r.cancel()
		<-r.done
		return r.result, nil
	}
}

// begin starts the call of a request. It outlives the request, and ends at the latest with the front end.
func (p *parked) begin(ctx context.Context, a *agentServer, reach *reach) *run {
	ctx, cancel := a.owner.bounded(context.WithoutCancel(ctx))
	r := &run{
		agent: a.agent.Load().Name, digest: digestOf(reach.req.Params), cancel: cancel,
		questions: make(chan *question), done: make(chan struct{}),
	}
	r.reach.Store(reach)
	call := a.decoded(reach.req, reach)
	call.Host = &provider.Host{
		OnProgress: func(step tool.Progress) { r.reach.Load().sendProgress(step) },
		OnLog:      func(line tool.LogRecord) { r.reach.Load().sendLog(line) },
		OnAsk:      func(ctx context.Context, q provider.Question) (provider.Answer, error) { return p.ask(ctx, r, q) },
	}
	p.runs.Go(func() {
		defer cancel()
		defer close(r.done)
		r.result = a.owner.options.Desk.Dispatch(ctx, call)
	})
	return r
}

// ask hands a question to the open request and waits for the answer that the next one brings.
func (p *parked) ask(ctx context.Context, r *run, asked provider.Question) (provider.Answer, error) {
	r.asking.Lock()
	defer r.asking.Unlock()
	params, refused := r.reach.Load().question(asked)
	if refused != nil {
		return provider.Answer{}, refused
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout,
		tool.Errorf(tool.Timeout, "nobody answered within %s; silence is not consent", p.timeout))
	defer cancel()
	q := &question{run: r, params: params, answer: make(chan provider.Answer, 1)}
	select {
	case r.questions <- q:
	case <-ctx.Done():
		return provider.Answer{}, context.Cause(ctx)
	}
	select {
	case given := <-q.answer:
		return given, nil
	case <-ctx.Done():
		p.drop(q)
		return provider.Answer{}, context.Cause(ctx)
	}
}

// hold keeps a question until the client is back, and is the result that takes it there.
func (p *parked) hold(q *question) *sdk.CallToolResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) >= maxParked {
		q.answer <- provider.Answer{Action: "cancel"}
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{}} // none: the client tries again later
	}
	q.state = rand.Text()
	p.waiting[q.state] = q
	return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{questionKey: q.params}, RequestState: q.state}
}

func (p *parked) drop(q *question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, q.state)
}

// resume finds the run that a request continues and hands it the answer. A state works once, for the agent and the call
// that it was made for.
func (p *parked) resume(a *agentServer, reach *reach) (*run, *tool.Error) {
	params := reach.req.Params
	p.mu.Lock()
	q, ok := p.waiting[params.RequestState]
	if ok = ok && q.run.agent == a.agent.Load().Name && q.run.digest == digestOf(params); ok {
		delete(p.waiting, params.RequestState)
	}
	p.mu.Unlock()
	if !ok {
		return nil, tool.Errorf(tool.BadRequest, "no call waits for this answer any more; call the tool again without requestState")
	}
	given := provider.Answer{Action: "cancel"} // what a client without an answer means
	if response, ok := params.InputResponses[questionKey].(*sdk.ElicitResult); ok {
		var err error
		if given, err = answer(response); err != nil {
			return nil, tool.AsError(err)
		}
	}
	q.run.reach.Store(reach)
	q.answer <- given
	return q.run, nil
}

// wait returns when no call runs any more.
func (p *parked) wait() { p.runs.Wait() }

func digestOf(params *sdk.CallToolParamsRaw) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(params.Name+"\x00"), params.Arguments...))
}
