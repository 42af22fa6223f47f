package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Channel is one way to a human.
type Channel interface {
	// Name tells channels apart, in records too: "client", "webhook".
	Name() string
	// Listening reports whether somebody could answer at all.
	Listening() bool
	// Ask puts requests to the human and returns what he decided, by the requests' ids; those that are missing were left
	// open. It blocks until then; ctx ends when all of them are settled, by whichever channel. [ErrDismissed] says that
	// the human closed the question without an answer.
	Ask(ctx context.Context, p *Prompt) (Reply, error)
}

// Prompt is what a human is asked: all that one batch needs.
type Prompt struct {
	Requests []Pending
}

// Reply is what a human decided, by the requests' ids.
type Reply map[string]Decision

// ErrDismissed is the answer of a human who gave none.
var ErrDismissed = errors.New("the question was closed without an answer")

// consultation is one channel being asked about some items.
type consultation struct {
	open   int // items of it that are not settled
	cancel context.CancelFunc
}

// suspended is the name under which a client counts as a channel that will bring its answer back.
const suspended = "client, later"

// consultAll asks every channel that listens about new items.
func (b *Broker) consultAll(fresh []*item) {
	if len(fresh) == 0 {
		return
	}
	for _, ch := range b.settings.Channels {
		if ch.Listening() {
			b.consult(b.ctx, ch, fresh)
		}
	}
}

// consult asks a channel about the items that it has not been asked about yet. It goes on when the call that brought them
// stops waiting, so that a human who takes his time can still answer.
func (b *Broker) consult(ctx context.Context, ch Channel, items []*item) {
	name := ch.Name()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unlink := context.AfterFunc(b.ctx, cancel)
	c := &consultation{cancel: cancel}
	var asked []*item
	p := &Prompt{}
	for _, it := range items {
		if it.open && it.asks[name] == nil {
			it.asks[name] = c
			asked, p.Requests = append(asked, it), append(p.Requests, it.Pending)
		}
	}
	if c.open = len(asked); c.open == 0 {
		unlink()
		cancel()
		return
	}
	b.asking.Add(1)
	b.later = append(b.later, func() {
		go func() {
			defer b.asking.Done()
			defer cancel()
			defer unlink()
			reply, err := askChannel(ctx, ch, p)
			b.heard(ctx, name, c, asked, reply, err)
		}()
	})
}

func askChannel(ctx context.Context, ch Channel, p *Prompt) (_ Reply, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the channel panicked: %v", v)
		}
	}()
	return ch.Ask(ctx, p)
}

// heard takes a channel's reply. What it left open waits for the other channels, if any is left.
func (b *Broker) heard(ctx context.Context, name string, c *consultation, items []*item, reply Reply, err error) {
	b.mu.Lock()
	defer b.unlock()
	waitedFor := false
	for _, it := range items {
		waitedFor = waitedFor || len(it.waiters) > 0
		if d, ok := reply[it.ID]; ok && it.open {
			d.By = cmp.Or(d.By, name)
			if bad := b.decide(it, d); bad != nil {
				err = errors.Join(err, bad)
			}
		}
		if it.open && it.asks[name] == c {
			delete(it.asks, name)
			b.checkSilent(it, err)
		}
	}
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, ErrDismissed):
	case waitedFor:
		b.log.Warn("an approval channel failed", "channel", name, "error", err)
	default: // a client's question often ends with the call that it belongs to
		b.log.Debug("an approval channel ended", "channel", name, "error", err)
	}
}

// checkSilent ends a request at once that calls wait for and nobody is left to answer. Without a waiting call it stays
// open: the next identical one brings its own channel.
func (b *Broker) checkSilent(it *item, err error) {
	if !it.open || len(it.waiters) == 0 || len(it.asks) > 0 || len(b.watchers) > 0 {
		return
	}
	if errors.Is(err, ErrDismissed) {
		b.close(it, tool.ApprovalTimeout, Decision{Reason: ErrDismissed.Error()})
		return
	}
	reason := "nobody listens"
	if err != nil {
		reason = "the question did not reach anybody"
	}
	b.close(it, tool.NobodyAsked, Decision{Reason: reason})
}

// release takes a channel off an item; the last one off ends the channel's wait.
func (it *item) release(name string) {
	c := it.asks[name]
	if c == nil {
		return
	}
	delete(it.asks, name)
	if c.open--; c.open == 0 {
		c.cancel()
	}
}
