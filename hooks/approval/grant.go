package approval

import (
	"context"
	"sync"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Grant is an approval that covers later calls, until it is revoked or its session ends.
type Grant struct {
	ID      string    `json:"id"`
	Kind    Choice    `json:"kind"` // Session or Always
	Agent   string    `json:"agent"`
	Session string    `json:"session,omitempty"` // of a Session grant
	Tool    tool.Name `json:"tool"`
	Source  string    `json:"source"` // the kind and the name of the tool's provider
	Key     string    `json:"rule"`   // the rule whose question it answers
	Pattern Pattern   `json:"pattern,omitempty"`
	By      string    `json:"by"`
	Created time.Time `json:"created"`
}

// covers reports whether the grant answers a request. It does so only while the rule still offers such grants.
func (g *Grant) covers(r *Request, b *Binding) bool {
	if g.Key != r.Key || g.Agent != r.Agent || g.Tool != b.Tool || g.Source != b.Source || !offers(r, g.Kind) {
		return false
	}
	if g.Kind == Session {
		return g.Session == r.Session
	}
	return g.Pattern.Covers(r.Arguments)
}

// Store keeps what has to survive the daemon: the Always grants, and which requests were open.
type Store interface {
	Grants(ctx context.Context) ([]Grant, error)
	AddGrant(ctx context.Context, g *Grant) error
	RemoveGrant(ctx context.Context, id string) error
	// Opened and Closed note a request that waits for an answer, and its end.
	Opened(ctx context.Context, p *Pending) error
	Closed(ctx context.Context, id string) error
	// Left returns and forgets the requests that were opened and not closed.
	Left(ctx context.Context) ([]Pending, error)
}

// memory is a store that survives nothing.
type memory struct {
	mu     sync.Mutex
	grants map[string]Grant
	open   map[string]Pending
}

// NewMemory returns a store that is gone with the process.
func NewMemory() Store { return &memory{grants: map[string]Grant{}, open: map[string]Pending{}} }

func (m *memory) Grants(context.Context) ([]Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Grant
	for _, g := range m.grants {
		out = append(out, g)
	}
	return out, nil
}

func (m *memory) AddGrant(_ context.Context, g *Grant) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grants[g.ID] = *g
	return nil
}

func (m *memory) RemoveGrant(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.grants, id)
	return nil
}

func (m *memory) Opened(_ context.Context, p *Pending) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[p.ID] = *p
	return nil
}

func (m *memory) Closed(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, id)
	return nil
}

func (m *memory) Left(context.Context) ([]Pending, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Pending
	for _, p := range m.open {
		out = append(out, p)
	}
	clear(m.open)
	return out, nil
}
