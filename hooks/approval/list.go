package approval

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Errors of [Broker.Answer], besides [ErrUnknown].
var (
	ErrSettled = errors.New("is settled already")
	ErrChoice  = errors.New("no valid choice")
)

// Event is a change that watchers see. One of the two is set.
type Event struct {
	Opened *Pending `json:"opened,omitempty"`
	Closed *Closed  `json:"closed,omitempty"`
}

// backlog is how many events a watcher may be behind before it is cut off.
const backlog = 256

type watcher struct{ events chan Event }

// List returns what waits for an answer, oldest first, and what a daemon before this one left behind.
func (b *Broker) List() []Pending {
	b.mu.Lock()
	defer b.unlock()
	now := time.Now()
	maps.DeleteFunc(b.lost, func(_ string, p Pending) bool { return now.After(p.Expires) })
	list := slices.Collect(maps.Values(b.lost))
	for _, it := range b.items {
		if it.open {
			list = append(list, it.Pending)
		}
	}
	slices.SortFunc(list, func(x, y Pending) int {
		return cmp.Or(x.Asked.Compare(y.Asked), strings.Compare(x.ID, y.ID))
	})
	return list
}

// Answer is a human's answer from a terminal, a console or a link. The caller has made sure that he may give it, and says
// in d.By who he is.
func (b *Broker) Answer(id string, d Decision) error {
	b.mu.Lock()
	defer b.unlock()
	if it := b.items[id]; it != nil {
		return b.decide(it, d)
	}
	if _, ok := b.lost[id]; ok {
		return fmt.Errorf("approval %s %w: the daemon was started anew and the call is gone", id, ErrSettled)
	}
	if how, ok := b.closed[id]; ok {
		return fmt.Errorf("approval %s %w: %s", id, ErrSettled, how)
	}
	return fmt.Errorf("approval %.40q %w; list them with `hermesd approvals list`", id, ErrUnknown)
}

// Watch streams what is open now and every change after that. While somebody watches, agents' questions are heard. The
// channel is closed by stop, by [Broker.Close], and when the watcher is too slow: it then watches again.
func (b *Broker) Watch() (events <-chan Event, stop func()) {
	b.mu.Lock()
	defer b.unlock()
	w := &watcher{}
	var open []Event
	for _, it := range b.items {
		if it.open {
			p := it.Pending
			open = append(open, Event{Opened: &p})
		}
	}
	slices.SortFunc(open, func(x, y Event) int { return x.Opened.Asked.Compare(y.Opened.Asked) })
	w.events = make(chan Event, len(open)+backlog)
	for _, e := range open {
		w.events <- e
	}
	b.watchers[w] = struct{}{}
	if b.done {
		b.unwatch(w)
	}
	return w.events, func() {
		b.mu.Lock()
		defer b.unlock()
		b.unwatch(w)
	}
}

func (b *Broker) unwatch(w *watcher) {
	if _, ok := b.watchers[w]; ok {
		delete(b.watchers, w)
		close(w.events)
	}
}

func (b *Broker) tell(e Event) {
	for w := range b.watchers {
		select {
		case w.events <- e:
		default:
			b.unwatch(w)
		}
	}
}
