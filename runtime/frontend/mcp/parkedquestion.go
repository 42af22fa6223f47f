package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// The questions of parked calls: each goes out with the result of the request that is open, and waits for the next request.

// question is what a run waits for.
type question struct {
	run      *run
	requests sdk.InputRequestMap
	answer   chan sdk.InputResponseMap // takes one
	state    string                    // while it is with the client
	over     bool                      // the run waits for it no more
}

// ask puts a question to the human.
func (p *parked) ask(ctx context.Context, r *run, asked provider.Question) (provider.Answer, error) {
	params, refused := r.reach.Load().question(asked)
	if refused != nil {
		return provider.Answer{}, refused
	}
	answers, err := p.put(ctx, r, sdk.InputRequestMap{questionKey: params})
	if err != nil {
		return provider.Answer{}, err
	}
	return answered(answers)
}

// answered is the human's answer to a question that stood alone.
func answered(given sdk.InputResponseMap) (provider.Answer, error) {
	if r, ok := given[questionKey].(*sdk.ElicitResult); ok {
		return answer(r)
	}
	return provider.Answer{Action: "cancel"}, nil // what a client without an answer means
}

// askAll asks for several things at once.
func (p *parked) askAll(ctx context.Context, r *run, inputs map[string]provider.Input) (map[string]json.RawMessage, error) {
	requests := sdk.InputRequestMap{}
	for id, in := range inputs {
		request, refused := r.reach.Load().input(in)
		if refused != nil {
			return nil, refused
		}
		requests[id] = request
	}
	given, ok := r.answeredEarly(requests)
	if !ok {
		var err error
		if given, err = p.put(ctx, r, requests); err != nil {
			return nil, err
		}
	}
	answers := map[string]json.RawMessage{}
	for id, response := range given {
		raw, err := json.Marshal(response)
		if err != nil {
			return nil, tool.Errorf(tool.Internal, "an answer of the client did not marshal: %w", err)
		}
		answers[id] = raw
	}
	return answers, nil
}

// answeredEarly is what the run's first request brought along, if that is all that a tool asks for: a client that knows
// the questions, or one that lost the state of an earlier round.
func (r *run) answeredEarly(requests sdk.InputRequestMap) (sdk.InputResponseMap, bool) {
	early := r.early.Swap(nil)
	if early == nil {
		return nil, false
	}
	for id := range requests {
		if _, ok := (*early)[id]; !ok {
			return nil, false
		}
	}
	return *early, true
}

// put hands requests to the open request and waits for the answers that the next one brings, or to the task that the call
// has become, whose questions stand side by side. Where there is no room for another question, nothing is asked and the run
// goes on with that error.
func (p *parked) put(ctx context.Context, r *run, requests sdk.InputRequestMap) (sdk.InputResponseMap, error) {
	t := r.handover.now()
	if t == nil {
		r.asking.Lock()
		defer r.asking.Unlock()
	}
	if !p.enter(r) {
		return nil, tool.Errorf(tool.RateLimited,
			"too many calls of this agent wait for answers, so nobody was asked; answer those questions, then call again")
	}
	defer p.leave(r)
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout,
		tool.Errorf(tool.Timeout, "nobody answered within %s; silence is not consent", p.timeout))
	defer cancel()
	if t != nil {
		return p.tasks.ask(ctx, t, requests)
	}
	if ctx.Err() != nil { // while others asked
		return nil, context.Cause(ctx)
	}
	q := &question{run: r, requests: requests, answer: make(chan sdk.InputResponseMap, 1)}
	r.attend()
	select {
	case r.questions <- q:
	case <-r.handover.began():
		return p.tasks.ask(ctx, r.handover.now(), requests)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case given := <-q.answer:
		return given, nil
	case <-ctx.Done():
		p.drop(q)
		return nil, context.Cause(ctx)
	}
}

func (p *parked) enter(r *run) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.room.Take(r.agent, 1)
}

func (p *parked) leave(r *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.room.Leave(r.agent, 1)
}

// hold keeps a question until the client is back. It reports false if its run waits for it no more.
func (p *parked) hold(q *question) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.over {
		return false
	}
	q.state = rand.Text()
	p.waiting[q.state] = q
	return true
}

// drop forgets a question that its run does not wait for any more.
func (p *parked) drop(q *question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q.over = true
	delete(p.waiting, q.state)
}

// resume finds the run that a request continues and hands it the answers; nil if there is none. A state works once, for the agent and the
// request that it was made for.
func (p *parked) resume(a *agentServer, reach *reach) *run {
	state := reach.round.state
	p.mu.Lock()
	q, ok := p.waiting[state]
	if ok = ok && q.run.agent == a.agent.Load().Name && q.run.digest == reach.round.digest; ok {
		delete(p.waiting, state)
	}
	p.mu.Unlock()
	if !ok {
		return nil
	}
	q.run.reach.Store(reach)
	q.answer <- reach.round.answers
	return q.run
}
