// Package hooks runs an operator's code before and after calls: programs, webhooks and plugins.
//
// A [Chain] holds all hooks. Hooks of one event run one after another in the order of the configuration; the strictest
// answer counts (block, then ask, then allow), whichever came first, and changes of arguments accumulate. A hook that
// fails, is late or answers nonsense follows its on_error. One that was late is skipped for a minute, during which its
// on_error decides at once, so that a hung hook cannot hold up every call.
package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// DefaultTimeout bounds one run of a hook that names no time of its own.
const DefaultTimeout = 10 * time.Second

// maxNotices bounds the runs of observing hooks that no call waits for; what comes on top is dropped and logged.
const maxNotices = 64

// OnError says what a failing hook means for the call.
type OnError string

// The two ways. "" is FailBlock for [PreCall] and FailAllow for the other events.
const (
	FailBlock OnError = "block"
	FailAllow OnError = "allow"
)

// Hook is one block of the configuration.
type Hook struct {
	Name string
	On   Event
	// Matches says which tools it concerns; nil means all. For [ProviderState] it gets a definition that has only Source
	// and SourceName.
	Matches func(*tool.Definition) bool
	Runner  Runner
	Timeout time.Duration // of one run; 0 is [DefaultTimeout]
	OnError OnError
}

// Options configure a chain. The zero value works.
type Options struct {
	// Dir is told to hooks as cwd.
	Dir    string
	Logger *slog.Logger // nil discards
}

// Chain runs hooks. It may be used from any goroutine.
type Chain struct {
	dir   string
	log   *slog.Logger
	hooks []*hook

	ctx     context.Context // of the runs that no call waits for
	cancel  context.CancelFunc
	notices sync.WaitGroup
	mu      sync.Mutex // guards running and closed
	running int
	closed  bool
}

// New checks hooks. It starts nothing.
func New(list []Hook, opts *Options) (*Chain, error) {
	if opts == nil {
		opts = &Options{}
	}
	c := &Chain{dir: opts.Dir, log: opts.Logger}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	for i := range list {
		h, err := newHook(&list[i], c.log)
		if err != nil {
			return nil, fmt.Errorf("hook %q: %w", list[i].Name, err)
		}
		c.hooks = append(c.hooks, h)
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

func newHook(h *Hook, log *slog.Logger) (*hook, error) {
	switch {
	case h.Name == "":
		return nil, errors.New("it has no name")
	case !h.On.known():
		return nil, fmt.Errorf("there is no event %q", h.On)
	case h.Runner == nil:
		return nil, errors.New("it has nothing to run")
	case h.Timeout < 0:
		return nil, errors.New("its timeout is negative")
	case h.OnError != "" && h.OnError != FailBlock && h.OnError != FailAllow:
		return nil, fmt.Errorf("on_error is %q; use block or allow", h.OnError)
	}
	out := &hook{Hook: *h, log: log.With("hook", h.Name, "event", string(h.On))}
	if out.Timeout == 0 {
		out.Timeout = DefaultTimeout
	}
	if out.OnError == "" {
		out.OnError = FailAllow
		if out.On == PreCall {
			out.OnError = FailBlock
		}
	}
	return out, nil
}

// Verdict is what the pre hooks said together.
type Verdict struct {
	Action  Action // [Allow], [Ask] or [Block]
	Hook    string // which hook asked or blocked
	Message string
	RuleKey string
	// Args are the arguments with all changes; nil if no hook changed any.
	Args json.RawMessage
}

// Before runs the [PreCall] hooks. Each sees what those before it changed. The first block ends the run: nothing is
// stricter. The error is a hook that had to run and could not.
func (c *Chain) Before(ctx context.Context, call *Call) (Verdict, *tool.Error) {
	v := Verdict{Action: Allow}
	args := call.Arguments
	for h := range c.matching(PreCall, call.Definition) {
		a, err := h.run(ctx, c.describe(PreCall, call, args))
		if err != nil {
			if ctx.Err() != nil {
				return Verdict{}, tool.AsError(ctx.Err())
			}
			if h.OnError == FailBlock {
				return Verdict{}, h.refuse(err, "%s was not run", call.Tool)
			}
			continue
		}
		switch a.Action {
		case Block:
			return Verdict{Action: Block, Hook: h.Name, Message: a.reason(h)}, nil
		case Ask:
			if v.Action != Ask {
				v.Action, v.Hook, v.Message, v.RuleKey = Ask, h.Name, a.reason(h), a.RuleKey
			}
		case Modify:
			merged, err := merge(args, a.Args)
			if err != nil {
				return Verdict{}, h.refuse(err, "%s was not run", call.Tool)
			}
			if len(a.Args) > 0 {
				args, v.Args = merged, merged
			}
		}
	}
	return v, nil
}

// reason is never empty: an agent or a human reads it.
func (a *Answer) reason(h *hook) string {
	if a.Message != "" {
		return a.Message
	}
	return fmt.Sprintf("the hook %q gave no reason", h.Name)
}

// After runs the [PostCall] hooks, each once, also after an error, and the [TransformResult] hooks if there is a result, and
// returns how the call ended after them. Post hooks run side by side and see what the provider returned; each transforming
// hook sees what those before it made of it.
func (c *Chain) After(ctx context.Context, call *Call, out Outcome) Outcome {
	observed := out
	var mu sync.Mutex
	var wg sync.WaitGroup
	var withheld *tool.Error
	for h := range c.matching(PostCall, call.Definition) {
		p := c.describe(PostCall, call, call.Arguments)
		p.ended(&observed)
		wg.Go(func() {
			if _, err := h.run(ctx, p); err != nil && h.OnError == FailBlock {
				mu.Lock()
				defer mu.Unlock()
				withheld = h.refuse(err, "%s ran, but its result is withheld", call.Tool)
			}
		})
	}
	if out.Err == nil {
		out = c.transform(ctx, call, out)
	}
	wg.Wait()
	if withheld != nil {
		return withhold(out, withheld)
	}
	return out
}

func (c *Chain) transform(ctx context.Context, call *Call, out Outcome) Outcome {
	for h := range c.matching(TransformResult, call.Definition) {
		p := c.describe(TransformResult, call, call.Arguments)
		p.ended(&out)
		a, err := h.run(ctx, p)
		result := out.Result
		if err == nil && a.Action == Modify {
			if result, err = a.resultOver(result); err != nil {
				h.failed(err)
			}
		}
		switch {
		case err == nil && a.Action == Block:
			return withhold(out, tool.Errorf(tool.BlockedByHook, "%s ran, but the operator withholds its result: %s", call.Tool, a.reason(h)))
		case err == nil:
			out.Result = result
		case h.OnError == FailBlock:
			return withhold(out, h.refuse(err, "%s ran, but its result is withheld", call.Tool))
		}
	}
	return out
}

func withhold(out Outcome, err *tool.Error) Outcome {
	out.Result, out.Err = nil, err
	return out
}

// resultOver is the result that a modifying answer makes of r: a new one, or r with some of its keys replaced.
func (a *Answer) resultOver(r *tool.Result) (*tool.Result, error) {
	if a.Result != nil {
		return a.Result, nil
	}
	if len(a.Args) == 0 {
		return r, nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if raw, err = merge(raw, a.Args); err != nil {
		return nil, err
	}
	return parseResult(raw)
}

// ApprovalAsked tells the [ApprovalRequested] hooks, and does not wait for them.
func (c *Chain) ApprovalAsked(call *Call, a *Approval) { c.approval(ApprovalRequested, call, a) }

// ApprovalAnswered tells the [ApprovalDecided] hooks, and does not wait for them.
func (c *Chain) ApprovalAnswered(call *Call, a *Approval) { c.approval(ApprovalDecided, call, a) }

func (c *Chain) approval(event Event, call *Call, a *Approval) {
	for h := range c.matching(event, call.Definition) {
		p := c.describe(event, call, call.Arguments)
		p.Approval = a
		c.notify(h, p)
	}
}

// ProviderChanged tells the [ProviderState] hooks, and does not wait for them.
func (c *Chain) ProviderChanged(p *Provider) {
	for h := range c.matching(ProviderState, &tool.Definition{Source: p.Source, SourceName: p.Name}) {
		c.notify(h, &payload{Event: ProviderState, Source: p.Source, SourceName: p.Name, Dir: c.dir, Provider: p})
	}
}

func (c *Chain) matching(event Event, d *tool.Definition) func(yield func(*hook) bool) {
	return func(yield func(*hook) bool) {
		for _, h := range c.hooks {
			if h.On == event && (h.Matches == nil || d != nil && h.Matches(d)) && !yield(h) {
				return
			}
		}
	}
}

// notify runs a hook that nobody waits for.
func (c *Chain) notify(h *hook, p *payload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if c.running >= maxNotices {
		h.failed(fmt.Errorf("%d runs of observing hooks are under way already; this event was dropped", maxNotices))
		return
	}
	c.running++
	c.notices.Go(func() {
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.running--
		}()
		h.run(c.ctx, p) //nolint:errcheck // reported by run; nothing depends on it
	})
}

// Close ends the runs that no call waits for, waits for them, and lets the runners go.
func (c *Chain) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.notices.Wait()
	for _, h := range c.hooks {
		h.Runner.Close()
	}
}
