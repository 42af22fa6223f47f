package approval

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hermesd/hermesd/internal/redact"
	"github.com/hermesd/hermesd/runtime/tool"
)

// item is one request that is put to humans. Its fields are guarded by the broker's lock.
type item struct {
	Pending
	binding Binding
	key     sum
	rule    string // what grants are bound to
	timer   *time.Timer
	asks    map[string]*consultation // channels that may still answer, by name

	settled  chan struct{} // closed when it is
	open     bool
	code     tool.Code // once settled: "" if it was approved
	decision Decision
	grant    string    // the grant that the answer made
	waiters  []*waiter // in the order in which they came
	owner    *waiter   // whom a Once covers; nil: nobody yet
}

// waiter is one call that waits for an item.
type waiter struct {
	request *Request
	item    *item
}

const idLength = 10 // characters of base32: people type ids

func newID() string { return strings.ToLower(rand.Text()[:idLength]) }

// all are the grants that a rule may offer.
var all = []Choice{Once, Session, Always}

func offers(r *Request, c Choice) bool {
	return (c == Once || r.Key != "" && !r.Floor) && (r.Choices == nil || slices.Contains(r.Choices, c))
}

// find returns an item that a call can wait for: one that is bound to the same, and whose Once, if it has been approved,
// covers nobody yet. Entries of one batch never share one, since the human decides about each.
func (b *Broker) find(key sum, taken []*waiter) *item {
	for _, it := range b.byCall[key] {
		if (it.open || it.owner == nil) && !slices.ContainsFunc(taken, func(w *waiter) bool { return w.item == it }) {
			return it
		}
	}
	return nil
}

// join makes a call wait for an item: one about the same call, or a new one.
func (b *Broker) join(r *Request, taken []*waiter) (w *waiter, fresh bool) {
	binding := r.binding()
	key := binding.sum()
	it := b.find(key, taken)
	if it == nil {
		it, fresh = b.open(r, binding, key), true
	}
	w = &waiter{request: r, item: it}
	it.waiters = append(it.waiters, w)
	if !it.open {
		it.owner = w
	}
	return w, fresh
}

func (b *Broker) open(r *Request, binding Binding, key sum) *item {
	d := r.Definition
	now := time.Now()
	shown := redact.JSON(r.Arguments, b.options.Mask)
	it := &item{
		binding: binding, key: key, rule: r.Key, open: true, settled: make(chan struct{}), asks: map[string]*consultation{},
		Pending: Pending{
			ID: newID(), CallID: r.CallID, Agent: r.Agent, Session: r.Session, Tool: d.Name, Title: d.Title, Source: d.Source,
			SourceName: d.SourceName, Arguments: shown, Hints: d.Annotations, Rule: r.Rule, Reason: b.options.Mask(r.Reason),
			Asked: now, Expires: now.Add(b.settings.Timeout), Binding: key.String(), Call: r,
		},
	}
	for _, c := range all {
		if !offers(r, c) {
			continue
		}
		if c == Always {
			p, err := PatternOf(r.Arguments)
			if err != nil || !bytes.Equal(shown, r.Arguments) {
				continue // arguments that no pattern can name, or show, are asked about each time
			}
			it.Pattern = p
		}
		it.Choices = append(it.Choices, c)
	}
	it.Choices = append(it.Choices, Deny)
	b.items[it.ID] = it
	b.byCall[key] = append(b.byCall[key], it)
	it.timer = time.AfterFunc(b.settings.Timeout, func() { b.expire(it) })
	p := it.Pending
	b.tell(Event{Opened: &p})
	b.stored("open request", func(ctx context.Context) error { return b.store.Opened(ctx, &p) })
	if b.options.OnAsked != nil {
		b.later = append(b.later, func() { b.options.OnAsked(&p) })
	}
	return it
}

// decide settles an item with a human's answer. It fails if the answer comes too late or chooses what was not offered.
func (b *Broker) decide(it *item, d Decision) error {
	if !it.open {
		return fmt.Errorf("approval %s %w: %s", it.ID, ErrSettled, it.ending())
	}
	if !slices.Contains(it.Choices, d.Choice) {
		return fmt.Errorf("%w: approval %s offers %v, not %q", ErrChoice, it.ID, it.Choices, d.Choice)
	}
	if d.Choice != Always {
		d.Pattern = nil
	} else if d.Pattern == nil {
		d.Pattern = it.Pattern
	} else if err := it.widens(d.Pattern); err != nil {
		return err
	}
	d.Reason = plain(d.Reason, maxReason)
	if d.Choice == Deny {
		b.close(it, tool.ApprovalDenied, d)
		return nil
	}
	if d.Choice != Once {
		it.grant = b.addGrant(it, &d)
	}
	b.close(it, "", d)
	return nil
}

// widens checks a human's own pattern: it must at least cover the call that he was asked about.
func (it *item) widens(p Pattern) error {
	for k, v := range p {
		if k == rest && v != rest {
			return fmt.Errorf(`%w: the key "*" of a pattern has the value "*" or is left out`, ErrChoice)
		}
		if k == rest {
			continue
		}
		if shown, ok := it.Pattern[k]; !ok || !matches(v, strings.Join(split(shown), "*")) {
			return fmt.Errorf("%w: the pattern does not cover this call's argument %q", ErrChoice, k)
		}
	}
	if _, open := p[rest]; !open && len(p) != len(it.Pattern) {
		return fmt.Errorf(`%w: the pattern leaves out arguments of this call; name them, or add "*" = "*"`, ErrChoice)
	}
	return nil
}

// close settles an item, whatever became of it. The first time counts.
func (b *Broker) close(it *item, code tool.Code, d Decision) {
	if !it.open {
		return
	}
	it.open, it.code, it.decision = false, code, d
	it.timer.Stop()
	close(it.settled)
	for name := range it.asks {
		it.release(name)
	}
	b.remember(it)
	c := Closed{Request: it.Pending, Decision: d, Code: code}
	b.tell(Event{Closed: &c})
	b.stored("closed request", func(ctx context.Context) error { return b.store.Closed(ctx, it.ID) })
	if b.options.OnClosed != nil {
		b.later = append(b.later, func() { b.options.OnClosed(&c) })
	}
	if len(it.waiters) > 0 {
		it.owner = it.waiters[0]
	}
	if it.grant != "" || code != "" && it.owner != nil {
		b.drop(it) // later calls find the grant, or ask anew
		return
	}
	// A call is still to come for it: the owner, or an identical one.
	it.timer = time.AfterFunc(b.settings.Timeout, func() { b.forget(it) })
}

// drop takes an item out of the reach of further calls. Those that wait for it still hold it.
func (b *Broker) drop(it *item) {
	it.timer.Stop()
	delete(b.items, it.ID)
	list := slices.DeleteFunc(b.byCall[it.key], func(o *item) bool { return o == it })
	if len(list) == 0 {
		delete(b.byCall, it.key)
	} else {
		b.byCall[it.key] = list
	}
}

func (b *Broker) expire(it *item) {
	b.mu.Lock()
	defer b.unlock()
	b.close(it, tool.ApprovalTimeout, Decision{})
}

func (b *Broker) forget(it *item) {
	b.mu.Lock()
	defer b.unlock()
	b.drop(it)
}

// leave ends a call's wait. A Once that covered it is there for the next identical call.
func (b *Broker) leave(w *waiter) {
	it := w.item
	it.waiters = slices.DeleteFunc(it.waiters, func(o *waiter) bool { return o == w })
	if it.owner == w {
		it.owner = nil
	}
}

// ending says how a settled item ended.
func (it *item) ending() string {
	switch it.code {
	case "":
		return fmt.Sprintf("approved (%s) by %s", it.decision.Choice, it.decision.By)
	case tool.ApprovalDenied:
		return "denied by " + it.decision.By
	case tool.ApprovalTimeout:
		return "nobody answered in time"
	default:
		return it.decision.Reason
	}
}

// maxClosed bounds the ends that are remembered for whoever answers too late.
const maxClosed = 1024

func (b *Broker) remember(it *item) {
	if len(b.order) >= maxClosed {
		delete(b.closed, b.order[0])
		b.order = b.order[1:]
	}
	b.closed[it.ID] = it.ending()
	b.order = append(b.order, it.ID)
}
