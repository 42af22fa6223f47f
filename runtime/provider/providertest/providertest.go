// Package providertest is a provider with behaviour for the tests of other packages: its tools are Go functions, its state
// is what the test says, and it keeps a record of what it was asked.
//
//	p := providertest.New("notes", providertest.Echo("notes_read"), providertest.Blocking("notes_sync"))
//	p.SetStatus(provider.Backoff, "killed by SIGKILL")
//	calls := p.Calls()
package providertest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Handler runs a tool.
type Handler func(ctx context.Context, req *provider.Request) (*tool.Result, error)

// Tool is a definition and what it does; a nil Handler echoes the arguments.
type Tool struct {
	tool.Definition
	Handler Handler
}

// Fake is a [provider.Runner] and a [provider.Checker].
type Fake struct {
	// OnChange, if set before use, is called after every change of the offer.
	OnChange func()
	// Who is the identity; its Source is "plugin" unless the test changes it before use.
	Who provider.Identity

	mu       sync.Mutex
	tools    []Tool
	offer    provider.Offer
	calls    []provider.Request
	checks   []tool.Name
	hold     error
	finished int
}

var (
	_ provider.Runner  = (*Fake)(nil)
	_ provider.Checker = (*Fake)(nil)
)

// New makes a provider in state ready. Definitions get what is missing: own name, source, schema, coldness.
func New(name string, tools ...Tool) *Fake {
	f := &Fake{Who: provider.Identity{Name: name, Source: tool.SourcePlugin}}
	f.offer.Status.State = provider.Ready
	f.SetTools(tools...)
	return f
}

// Echo is a read-only, parallel-safe tool that answers with its arguments as text and as structured content.
func Echo(name tool.Name) Tool {
	yes := true
	return Tool{Definition: tool.Definition{
		Name: name, Description: "Echo the arguments.",
		Annotations: tool.Annotations{ReadOnly: &yes, ParallelSafe: &yes, Idempotent: &yes},
	}}
}

// Failing is a tool that always ends with err.
func Failing(name tool.Name, err error) Tool {
	return Tool{
		Definition: tool.Definition{Name: name, Description: "Fail."},
		Handler:    func(context.Context, *provider.Request) (*tool.Result, error) { return nil, err },
	}
}

// Blocking is a tool that runs until its context ends.
func Blocking(name tool.Name) Tool {
	return Tool{
		Definition: tool.Definition{Name: name, Description: "Run until cancelled."},
		Handler: func(ctx context.Context, _ *provider.Request) (*tool.Result, error) {
			<-ctx.Done()
			return nil, tool.AsError(ctx.Err())
		},
	}
}

// Asking is a tool that asks the human question and answers with the action and the content.
func Asking(name tool.Name, question provider.Question) Tool {
	return Tool{
		Definition: tool.Definition{Name: name, Description: "Ask a human."},
		Handler: func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
			answer, err := req.Host.Ask(ctx, question)
			if err != nil {
				return nil, err
			}
			return tool.TextResult(answer.Action + " " + string(answer.Content)), nil
		},
	}
}

// Identity implements [provider.Provider].
func (f *Fake) Identity() provider.Identity { return f.Who }

// Offer implements [provider.Provider].
func (f *Fake) Offer() *provider.Offer {
	f.mu.Lock()
	defer f.mu.Unlock()
	offer := f.offer
	return &offer
}

// Invoke implements [provider.Provider]. It refuses calls in the states in which a real provider would.
func (f *Fake) Invoke(ctx context.Context, req *provider.Request) (*tool.Result, error) {
	handler, err := f.begin(req)
	if err != nil {
		return nil, err
	}
	result, err := handler(ctx, req)
	f.mu.Lock()
	f.finished++
	f.mu.Unlock()
	return result, err
}

func (f *Fake) begin(req *provider.Request) (Handler, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	status := f.offer.Status
	switch status.State {
	case provider.Ready, provider.Installed:
	case provider.Starting, provider.Draining, provider.Backoff:
		return nil, tool.Errorf(tool.ProviderStarting, "provider %q is not ready yet: %s", f.Who.Name, status.Reason)
	case provider.Quarantined:
		return nil, tool.Errorf(tool.ProviderQuarantined, "provider %q is quarantined: %s", f.Who.Name, status.Reason)
	default:
		return nil, tool.Errorf(tool.ProviderDown, "provider %q is down: %s", f.Who.Name, status.Reason)
	}
	i := slices.IndexFunc(f.tools, func(t Tool) bool { return t.Name == req.Definition.Name })
	if i < 0 {
		return nil, tool.Errorf(tool.BadAnswer, "provider %q has no tool %q", f.Who.Name, req.Definition.Name)
	}
	f.calls = append(f.calls, *req)
	return f.tools[i].Handler, nil
}

// Run implements [provider.Runner]: it waits for ctx.
func (f *Fake) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Check implements [provider.Checker] from what SetUnmet said.
func (f *Fake) Check(_ context.Context, name tool.Name) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checks = append(f.checks, name)
	if reason, unmet := f.offer.Unmet[name]; unmet {
		return tool.Errorf(tool.NotAvailable, "%s", reason)
	}
	return f.hold
}

// SetTools replaces the tools.
func (f *Fake) SetTools(tools ...Tool) {
	f.change(func() {
		f.tools = slices.Clone(tools)
		f.offer.Tools = make([]tool.Definition, len(tools))
		for i := range f.tools {
			t := &f.tools[i]
			f.complete(t)
			f.offer.Tools[i] = t.Definition
		}
	})
}

func (f *Fake) complete(t *Tool) {
	if t.OwnName == "" {
		t.OwnName = t.Name
	}
	if t.Source == "" {
		t.Source = f.Who.Source
	}
	if t.SourceName == "" {
		t.SourceName = f.Who.Name
	}
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	if t.Coldness == "" {
		t.Coldness = tool.External
	}
	if t.Handler == nil {
		t.Handler = echo
	}
}

func echo(_ context.Context, req *provider.Request) (*tool.Result, error) {
	return &tool.Result{Content: []tool.Content{tool.Text(string(req.Call.Arguments))}, Structured: req.Call.Arguments}, nil
}

// SetStatus changes the state.
func (f *Fake) SetStatus(state provider.State, reason string) {
	f.change(func() { f.offer.Status.State, f.offer.Status.Reason = state, reason })
}

// SetUnmet makes a tool's precondition fail for a reason, or hold again if reason is "".
func (f *Fake) SetUnmet(name tool.Name, reason string) {
	f.change(func() { f.offer.Unmet = with(f.offer.Unmet, name, reason) })
}

// SetRefused quarantines one tool for a reason, or accepts it if reason is "".
func (f *Fake) SetRefused(name tool.Name, reason string) {
	f.change(func() { f.offer.Refused = with(f.offer.Refused, name, reason) })
}

// FailChecks makes Check return err for every tool whose precondition otherwise holds; nil ends that.
func (f *Fake) FailChecks(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hold = err
}

func (f *Fake) change(edit func()) {
	f.mu.Lock()
	edit()
	f.mu.Unlock()
	if f.OnChange != nil {
		f.OnChange()
	}
}

// with copies the map, since published offers never change.
func with(old map[tool.Name]string, name tool.Name, reason string) map[tool.Name]string {
	m := make(map[tool.Name]string, len(old)+1)
	for k, v := range old {
		m[k] = v
	}
	if m[name] = reason; reason == "" {
		delete(m, name)
	}
	return m
}

// Calls returns the requests that reached a tool, in order.
func (f *Fake) Calls() []provider.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Finished is how many of the calls have returned.
func (f *Fake) Finished() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.finished
}

// Checks returns the names that Check was asked for, in order.
func (f *Fake) Checks() []tool.Name {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.checks)
}
