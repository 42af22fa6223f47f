package pipeline_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// kb is a provider with tools, and the view of an agent that has all of them.
type kb struct {
	identity provider.Identity
	offer    provider.Offer
	tools    map[string]*tool.Definition
	invoke   func(ctx context.Context, req *provider.Request) (*tool.Result, error)
	check    func() error

	mu   sync.Mutex
	runs []string // the arguments of every call that came through
	busy bool     // do not keep them
}

func newKB() *kb {
	k := &kb{
		identity: provider.Identity{Name: "kb", Source: tool.SourceMCP},
		offer:    provider.Offer{Status: provider.Status{State: provider.Ready}},
		tools:    map[string]*tool.Definition{},
		invoke: func(context.Context, *provider.Request) (*tool.Result, error) {
			return tool.TextResult("found"), nil
		},
		check: func() error { return nil },
	}
	k.add("search", `{"type":"object","properties":{"q":{"type":"string"},"n":{"type":"integer"}}}`)
	return k
}

func (k *kb) add(name, schema string) *tool.Definition {
	d := &tool.Definition{Name: name, OwnName: name, Source: k.identity.Source, SourceName: k.identity.Name, InputSchema: json.RawMessage(schema)}
	k.tools[name] = d
	return d
}

func (k *kb) Identity() provider.Identity { return k.identity }
func (k *kb) Offer() *provider.Offer      { return &k.offer }

func (k *kb) Invoke(ctx context.Context, req *provider.Request) (*tool.Result, error) {
	k.mu.Lock()
	if !k.busy {
		k.runs = append(k.runs, string(req.Call.Arguments))
	}
	k.mu.Unlock()
	return k.invoke(ctx, req)
}

func (k *kb) Check(context.Context, tool.Name) error { return k.check() }

func (k *kb) Resolve(name tool.Name) (*provider.Binding, error) {
	d, ok := k.tools[name]
	if !ok {
		return nil, tool.Errorf(tool.UnknownTool, "no tool %q", name)
	}
	return &provider.Binding{Definition: d, Provider: k}, nil
}

// ran returns what came through, in any order.
func (k *kb) ran() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.runs)
}

func (k *kb) request(name, args string) *pipeline.Request {
	return &pipeline.Request{View: k, Call: &tool.Call{Agent: "desk", Session: "s", Tool: name, Arguments: json.RawMessage(args)}}
}

// trace is every seam at once; it notes what it is asked and answers as it is told.
type trace struct {
	mu      sync.Mutex
	steps   []string
	records []*tool.Record

	admit    *tool.Error
	verdict  pipeline.Verdict
	hookErr  *tool.Error
	decision pipeline.Decision
	answer   func(e *pipeline.Entry) pipeline.Answer
	redeem   *tool.Error
	startErr error
	fit      *tool.Error
	after    func(out *pipeline.Outcome)
	counted  func(out *pipeline.Outcome)
}

func (s *trace) note(step string, e *pipeline.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step+" "+e.Call.Tool+" "+string(e.Call.Arguments))
}

func (s *trace) Admit(_ context.Context, e *pipeline.Entry) (func(), *tool.Error) {
	s.note("admit", e)
	return func() { s.note("leave", e) }, s.admit
}

func (s *trace) Count(e *pipeline.Entry, out *pipeline.Outcome) {
	s.note("count", e)
	if s.counted != nil {
		s.counted(out)
	}
}

func (s *trace) Before(_ context.Context, e *pipeline.Entry) (pipeline.Verdict, *tool.Error) {
	s.note("before", e)
	return s.verdict, s.hookErr
}

func (s *trace) After(_ context.Context, e *pipeline.Entry, out *pipeline.Outcome) {
	s.note("after", e)
	if s.after != nil {
		s.after(out)
	}
}

func (s *trace) Decide(_ context.Context, e *pipeline.Entry) pipeline.Decision {
	s.note("decide", e)
	return s.decision
}

func (s *trace) Ask(_ context.Context, entries []*pipeline.Entry) []pipeline.Answer {
	answers := make([]pipeline.Answer, len(entries))
	for i, e := range entries {
		s.note("ask", e)
		answers[i] = s.answer(e)
	}
	return answers
}

func (s *trace) Redeem(_ context.Context, e *pipeline.Entry) *tool.Error {
	s.note("redeem", e)
	return s.redeem
}

func (s *trace) Started(_ context.Context, r *tool.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, "started "+r.Tool+" "+string(r.Arguments))
	s.records = append(s.records, r)
	return s.startErr
}

func (s *trace) Finished(r *tool.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, "finished "+r.Tool+" "+string(r.Arguments))
	s.records = append(s.records, r)
}

func (s *trace) Fit(_ context.Context, e *pipeline.Entry, r *tool.Result) (*tool.Result, *tool.Error) {
	s.note("fit", e)
	return r, s.fit
}

// kinds are the kinds of the records made.
func (s *trace) kinds() (list []tool.RecordKind) {
	for _, r := range s.records {
		list = append(list, r.Kind)
	}
	return list
}

func newPipeline(t testing.TB, opts *pipeline.Options) *pipeline.Pipeline {
	t.Helper()
	p, err := pipeline.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func traced(t testing.TB, s *trace) *pipeline.Pipeline {
	return newPipeline(t, &pipeline.Options{Guard: s, Hooks: s, Rules: s, Approvals: s, Audit: s, Results: s})
}
