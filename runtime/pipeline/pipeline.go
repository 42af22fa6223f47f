package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/hermesd/hermesd/runtime/schema"
	"github.com/hermesd/hermesd/runtime/tool"
)

// DefaultTimeout bounds a call whose tool names no time of its own.
const DefaultTimeout = 60 * time.Second

// DefaultParallel is how many entries of one batch run side by side at most.
const DefaultParallel = 8

// Options configure a pipeline. The zero value works and records nothing.
type Options struct {
	Schemas   *schema.Cache // nil: one of the default size
	Guard     Guard
	Hooks     Hooks
	Rules     Rules
	Approvals Approvals // nil: what needs a human is refused with [tool.NobodyAsked]
	Audit     Audit
	Results   Results
	// Timeout bounds a call whose tool names no time of its own; 0 is [DefaultTimeout].
	Timeout time.Duration
	// MaxResultBytes bounds one result; 0 leaves it to the provider.
	MaxResultBytes int
	// Parallel bounds the parallel_safe entries of one batch that run side by side; 0 is [DefaultParallel].
	Parallel int
	// Mask hides secrets in errors, in the steps of an explained call, and in what a running call tells its caller; nil
	// hides nothing. Results are left as they are.
	Mask func(string) string
	// Logger gets what agents do not see; nil discards it.
	Logger *slog.Logger
}

// Pipeline runs calls. It may be used from any goroutine.
type Pipeline struct {
	options Options
	ids     *ids
}

// New makes a pipeline. A nil opts is the zero Options.
func New(opts *Options) (*Pipeline, error) {
	p := &Pipeline{ids: newIDs()}
	if opts != nil {
		p.options = *opts
	}
	o := &p.options
	if o.Timeout < 0 || o.MaxResultBytes < 0 || o.Parallel < 0 {
		return nil, errors.New("pipeline: timeout, result size and parallel entries must not be negative")
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Parallel == 0 {
		o.Parallel = DefaultParallel
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Schemas == nil {
		o.Schemas = schema.NewCache(&schema.Options{Logger: o.Logger})
	}
	return p, nil
}

// Call runs one call to its end.
func (p *Pipeline) Call(ctx context.Context, req *Request) Outcome {
	return p.Do(ctx, []*Request{req})[0]
}

// enter makes the entry of a request. It copies the call, so that the caller's stays as it was.
func (p *Pipeline) enter(req *Request) *Entry {
	call := *req.Call
	if call.ID == "" {
		call.ID = p.ids.next()
	}
	if len(call.Arguments) == 0 {
		call.Arguments = []byte("{}")
	}
	return &Entry{Request: req, Call: &call, started: time.Now()}
}

// pass takes an entry through the stages of one phase, up to the first that refuses it.
func (p *Pipeline) pass(ctx context.Context, e *Entry, ph phase) {
	for i := range order {
		if s := &order[i]; s.phase == ph && e.out.Err == nil {
			e.out.Err = p.guarded(ctx, e, s)
		}
	}
}

// finish takes an entry through the stages that follow every call, however it ended.
func (p *Pipeline) finish(ctx context.Context, e *Entry) {
	ctx = context.WithoutCancel(ctx)
	for i := range order {
		if s := &order[i]; s.phase == afterwards {
			if err := p.guarded(ctx, e, s); err != nil && e.out.Err == nil {
				e.out.Err, e.out.Result = err, nil
			}
		}
	}
}

// guarded runs one stage; a panic in it costs this call and nothing else.
func (p *Pipeline) guarded(ctx context.Context, e *Entry, s *stage) (err *tool.Error) {
	defer func() {
		if v := recover(); v != nil {
			err = tool.Errorf(tool.Internal, "%s failed inside hermesd (stage %s, call %s); tell the operator", e.Call.Tool, s.name, e.Call.ID).
				WithDetail("panic: %v", v)
			p.options.Logger.Error("a stage panicked", "stage", s.name, "call", e.Call.ID, "tool", e.Call.Tool,
				"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	if e.Request.Explain {
		defer e.explain(s.name, time.Now(), &err)
	}
	return s.run(p, ctx, e)
}
