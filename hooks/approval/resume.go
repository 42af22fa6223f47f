package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hermesd/hermesd/runtime/tool"
)

// suspension is what the client of a suspended batch gets. The items count as asked: the client has them now.
func (b *Broker) suspension(items []*item) (json.RawMessage, error) {
	s := &Suspension{}
	state := &State{}
	for _, it := range items {
		s.Requests = append(s.Requests, it.Pending)
		state.Items = append(state.Items, StateItem{it.ID, it.Binding})
		state.Expires = max(state.Expires, it.Expires.UnixMilli())
		if it.asks[suspended] == nil {
			it.asks[suspended] = &consultation{open: 1, cancel: func() {}}
		}
	}
	var err error
	if s.Message, s.Schema, err = Form(s.Requests); err != nil {
		return nil, err
	}
	if s.State, err = Seal(b.options.Key, state); err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// resume takes the answers that a client brought back with its batch. It fails if the batch is not the one that was
// suspended, or was brought back before; nothing of it may run then. It returns the ids of what the client was asked about.
func (b *Broker) resume(a *Ask) ([]string, error) {
	var back Resumption
	if err := json.Unmarshal([]byte(a.Resume), &back); err != nil {
		return nil, errors.New("what the client brought back is not what it was given")
	}
	state, err := Open(b.options.Key, back.State)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.unlock()
	items, err := b.suspendedItems(a, state)
	if err != nil {
		return nil, err
	}
	asked, ids := make([]Pending, len(items)), make([]string, len(items))
	for i, it := range items {
		asked[i], ids[i] = it.Pending, it.ID
	}
	reply, err := ParseForm(asked, back.Action, back.Content)
	for _, it := range items {
		if !it.open {
			continue // another channel was first
		}
		it.release(suspended)
		if d, ok := reply[it.ID]; ok {
			d.By = "client"
			err = errors.Join(err, b.decide(it, d))
		}
		if it.open && errors.Is(err, ErrDismissed) && len(it.asks) == 0 && len(b.watchers) == 0 {
			b.close(it, tool.ApprovalTimeout, Decision{Reason: ErrDismissed.Error()})
		}
	}
	if errors.Is(err, ErrDismissed) {
		return ids, nil
	}
	return ids, err
}

// suspendedItems are the items of a state, each of which must be about one of the calls that were brought back.
func (b *Broker) suspendedItems(a *Ask, state *State) ([]*item, error) {
	calls := make([]string, len(a.Requests))
	for i, r := range a.Requests {
		binding := r.binding()
		calls[i] = binding.sum().String()
	}
	var items []*item
	for _, s := range state.Items {
		n := slices.Index(calls, s.Binding)
		if n < 0 {
			return nil, errors.New("the calls are not those that were asked about")
		}
		calls[n] = "" // two entries need two approvals
		it := b.items[s.ID]
		if it == nil || it.Binding != s.Binding {
			return nil, fmt.Errorf("approval %s was used already, or is gone", s.ID)
		}
		items = append(items, it)
	}
	return items, nil
}
