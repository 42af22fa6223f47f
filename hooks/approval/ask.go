package approval

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Ask is the entries of one batch that need a human, and how their own client can ask him.
type Ask struct {
	Requests []*Request
	// Client asks through the agent's own client; nil if it cannot. A Suspendable one is not asked this way.
	Client Channel
	// Suspendable clients bring the batch back with the answer, instead of being asked while it waits (MCP's
	// input_required). Resume is what they brought: the JSON of a [Resumption]; "" if nothing.
	Suspendable bool
	Resume      string
	// Progress hears every 10 s how long humans have been thinking; nil if nobody wants to.
	Progress func(elapsed time.Duration)
}

// Ask puts all requests that no grant covers to humans at once and returns one answer for each, in order.
func (b *Broker) Ask(ctx context.Context, a *Ask) []Answer {
	answers := make([]Answer, len(a.Requests))
	var resumed []string
	if a.Resume != "" {
		var err error
		if resumed, err = b.resume(a); err != nil {
			for i, r := range a.Requests {
				answers[i].Err = refuseVoid(r, err.Error())
			}
			return answers
		}
	}
	deadline := time.NewTimer(max(b.wait(), 0))
	defer deadline.Stop()
	r := &round{broker: b, ask: a, answers: answers, resumed: resumed, began: time.Now(), deadline: deadline}
	for i := range a.Requests {
		r.todo = append(r.todo, i)
	}
	for len(r.todo) > 0 { // again for identical calls of which a Once covered another one
		if !r.gather(ctx) {
			break
		}
		r.wait(ctx)
		r.collect(ctx)
	}
	return answers
}

func (b *Broker) wait() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.settings.Wait
}

// round is one Ask under way.
type round struct {
	broker   *Broker
	ask      *Ask
	answers  []Answer
	resumed  []string // the requests that the client has been asked about
	began    time.Time
	deadline *time.Timer
	late     bool

	todo    []int     // requests without an answer
	waiting []*waiter // for each of todo
}

// gather answers what can be answered at once and makes the others wait. It reports false if nothing is left to wait for.
func (r *round) gather(ctx context.Context) bool {
	b := r.broker
	b.mu.Lock()
	defer b.unlock()
	var todo []int
	var fresh []*item
	r.waiting = nil
	for _, i := range r.todo {
		req := r.ask.Requests[i]
		if answer, ok := b.standing(req); ok {
			r.answers[i] = answer
			continue
		}
		if err := b.askable(req, r.ask, r.waiting); err != nil {
			r.answers[i].Err = err
			continue
		}
		w, isNew := b.join(req, r.waiting)
		if isNew {
			fresh = append(fresh, w.item)
		}
		todo, r.waiting = append(todo, i), append(r.waiting, w)
	}
	r.todo = todo
	b.consultAll(fresh)
	return r.consultClient(ctx)
}

// consultClient puts what is open to the agent's own client. It reports false if there is nothing to wait for.
func (r *round) consultClient(ctx context.Context) bool {
	b := r.broker
	var open []*item
	for _, w := range r.waiting {
		if w.item.open {
			open = append(open, w.item)
		}
	}
	switch {
	case len(r.waiting) == 0:
		return false
	case len(open) == 0:
	case r.ask.Suspendable && slices.ContainsFunc(open, func(it *item) bool { return !slices.Contains(r.resumed, it.ID) }):
		b.suspend(r, open)
		return false
	case r.ask.Client != nil && !r.ask.Suspendable && r.ask.Client.Listening():
		b.consult(ctx, r.ask.Client, open)
	}
	for _, it := range open {
		b.checkSilent(it, nil)
	}
	return true
}

// suspend answers the batch with what its client is to ask. The calls do not wait here: the client will bring them back.
func (b *Broker) suspend(r *round, open []*item) {
	for _, w := range r.waiting {
		b.leave(w)
	}
	payload, err := b.suspension(open)
	for n, i := range r.todo {
		if err != nil {
			r.answers[i].Err = tool.Errorf(tool.Internal, "%s was not run: its approval cannot be asked for: %w", r.ask.Requests[i].Definition.Name, err)
			continue
		}
		r.answers[i] = Answer{ID: r.waiting[n].item.ID, Suspend: payload}
	}
	r.todo = nil
}

// wait returns when all items are settled, the call has waited long enough, or its caller has gone.
func (r *round) wait(ctx context.Context) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for n := 0; n < len(r.waiting) && !r.late; {
		select {
		case <-r.waiting[n].item.settled:
			n++
			continue
		default:
		}
		select {
		case <-r.waiting[n].item.settled:
			n++
		case <-r.deadline.C:
			r.late = true
		case <-tick.C:
			if r.ask.Progress != nil {
				r.ask.Progress(time.Since(r.began))
			}
		case <-ctx.Done():
			return
		}
	}
}

// collect turns what has been settled into answers.
func (r *round) collect(ctx context.Context) {
	b := r.broker
	b.mu.Lock()
	defer b.unlock()
	var todo []int
	for n, i := range r.todo {
		w := r.waiting[n]
		answer := &r.answers[i]
		answer.ID, answer.By = w.item.ID, w.item.decision.By
		switch {
		case ctx.Err() != nil:
			answer.Err = tool.Errorf(tool.Cancelled, "%s was not run: the caller gave up while a human was asked: %w", w.request.Definition.Name, ctx.Err())
			if w.item.open && len(w.item.waiters) == 1 {
				w.item.release(clientOf(r.ask))
			}
		case w.item.open:
			answer.Err = refusePending(w.request, w.item)
		case w.item.code != "":
			answer.Err = refuse(w.request, w.item, b.settings.Timeout)
			b.collected(w.item)
		case w.item.decision.Choice == Once && w.item.owner != w:
			todo = append(todo, i)
		default:
			b.issue(w.item.ID, w.request, w.item.grant)
			b.collected(w.item)
		}
		b.leave(w)
	}
	r.todo, r.waiting = todo, nil
}

// collected drops a settled item of which a call knows now.
func (b *Broker) collected(it *item) {
	if b.items[it.ID] == it {
		b.drop(it)
	}
}

func clientOf(a *Ask) string {
	if a.Client == nil {
		return suspended
	}
	return a.Client.Name()
}

// standing answers a request that needs no human now.
func (b *Broker) standing(r *Request) (Answer, bool) {
	name := r.Definition.Name
	if b.done {
		return Answer{Err: tool.Errorf(tool.ShuttingDown, "%s was not run: the daemon is stopping", name)}, true
	}
	if r.Policy != b.settings.Policy {
		return Answer{Err: refuseVoid(r, "the policy has changed")}, true
	}
	if b.settings.Mode == DenyAll {
		return Answer{Err: tool.Errorf(tool.NobodyAsked, "%s was not run: it needs a human's approval, and the operator has set approvals to be refused without asking; go on without it", name)}, true
	}
	if r.Floor {
		return Answer{}, false
	}
	if b.settings.Mode == Off {
		id := newID()
		b.issue(id, r, "")
		return Answer{ID: id, By: "approvals are off"}, true
	}
	binding := r.binding()
	for _, g := range b.grants {
		if g.covers(r, &binding) {
			id := newID()
			b.issue(id, r, g.ID)
			return Answer{ID: id, By: "grant " + g.ID + " of " + g.By}, true
		}
	}
	return Answer{}, false
}

// askable refuses a request that nobody would answer, and one too many.
func (b *Broker) askable(r *Request, a *Ask, taken []*waiter) *tool.Error {
	if !r.Attended {
		return tool.Errorf(tool.NobodyAsked, "%s was not run: it needs a human's approval and this agent runs unattended, so nobody was asked; go on without it", r.Definition.Name)
	}
	binding := r.binding()
	if b.find(binding.sum(), taken) != nil {
		return nil
	}
	own := 0
	for _, it := range b.items {
		if it.Agent == r.Agent {
			own++
		}
	}
	if own >= b.options.MaxOpen || len(b.items) >= maxOpenOfAll {
		return tool.Errorf(tool.RateLimited, "%s was not run: too many approvals are open already (%d of this agent); wait until they are answered", r.Definition.Name, own)
	}
	if a.Suspendable || a.Client != nil && a.Client.Listening() || len(b.watchers) > 0 {
		return nil
	}
	for _, c := range b.settings.Channels {
		if c.Listening() {
			return nil
		}
	}
	return tool.Errorf(tool.NobodyAsked, "%s was not run: it needs a human's approval and nobody listens for such questions here, so nobody was asked; tell the user, or go on without it", r.Definition.Name)
}

// Suspension is what a suspended batch answers with: a form for the human, and the state that the client brings back.
type Suspension struct {
	State    string          `json:"state"`
	Message  string          `json:"message"`
	Schema   json.RawMessage `json:"schema"`
	Requests []Pending       `json:"requests"`
}

// Resumption is what a client brings back: the state, and what the human did with the form.
type Resumption struct {
	State   string          `json:"state"`
	Action  string          `json:"action"` // accept, decline or cancel, as MCP's elicitation has it
	Content json.RawMessage `json:"content,omitempty"`
}
