// Package provider says what owns tools: a plugin process, an MCP server, the connector gateway. The catalog reads what a
// provider has, the pipeline invokes it, and neither knows of processes or wires.
package provider

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// State is where a provider stands in its life.
type State string

// The states of a provider. Only Ready runs calls at once; Installed, Starting, Draining and Backoff make a call wait or fail
// with [tool.ProviderStarting]; the others refuse it.
const (
	Installed   State = "installed" // known from its cache, not started: the first call starts it
	Disabled    State = "disabled"  // switched off by the operator
	Starting    State = "starting"
	Ready       State = "ready"
	Draining    State = "draining"    // being stopped, idle or to start anew: a call starts it again
	Backoff     State = "backoff"     // failed, will be tried again by itself
	Quarantined State = "quarantined" // refused until the operator acts
	Stopped     State = "stopped"
)

// Status is a provider's state with its reason, for operators and for agents that ask why a tool is not to be had.
type Status struct {
	State  State
	Reason string    // one line; in Ready "", or what the operator may want to know
	Since  time.Time // when State was entered
	// LastSuccess is the end of the last exchange that worked (zero: none yet). A provider is healthy only if its last
	// real exchange succeeded.
	LastSuccess time.Time
	// LastFailure is the end of the last exchange that did not work, or of the last life that ended unplanned (zero: none
	// yet), and Failure is what happened, in one line.
	LastFailure time.Time
	Failure     string
	Restarts    int // unplanned ones since the daemon started
	PID         int // 0 if no process runs
}

// Healthy reports whether it runs and its last real exchange succeeded.
func (s *Status) Healthy() bool {
	return s.State == Ready && !s.LastSuccess.IsZero() && !s.LastSuccess.Before(s.LastFailure)
}

// Identity is what the operator's block says about a provider, whatever its process does.
type Identity struct {
	Name   string // the block's label
	Source tool.Source
	// Prefix begins its tools' names, followed by "__"; "" where they have none. No other provider has names below it.
	Prefix string
	// Defer overrides the deferral of external tools (nil: deferred).
	Defer *bool
	// Override lets its tools shadow a built-in's name.
	Override bool
	// Parallel says that all its tools may run side by side, whatever they declare.
	Parallel bool
}

// Offer is what a provider has right now. It is immutable; a provider publishes a new one when something changed.
type Offer struct {
	// Tools are the definitions, complete with full names, in the provider's order. A provider that is down keeps
	// offering what it last had. nil: they are not known yet.
	Tools []tool.Definition
	// Unmet maps a tool's full name to the reason why its precondition does not hold, with what would help.
	Unmet map[tool.Name]string
	// Refused maps a full name to the reason why this tool is quarantined although its provider runs.
	Refused map[tool.Name]string
	Status  Status
}

// Provider owns tools. All methods may be called from any goroutine.
type Provider interface {
	Identity() Identity
	// Offer returns at once and never blocks on a process.
	Offer() *Offer
	// Invoke runs one call and returns when it has ended or ctx has. It returns a *tool.Error for everything that went
	// wrong outside the tool, with [tool.NotSent] or [tool.OutcomeUnknown] when the process died.
	Invoke(ctx context.Context, req *Request) (*tool.Result, error)
}

// Runner is the life of a provider: Run starts what must be started, supervises it, and returns nil after ctx ended and
// everything it started is gone. A provider's troubles are states, never an error of Run.
type Runner interface {
	Provider
	Run(ctx context.Context) error
}

// Checker is implemented by providers whose tools have preconditions. Check asks again whether one tool's precondition
// holds, within ctx; the error's text is what the agent reads.
type Checker interface {
	Check(ctx context.Context, name tool.Name) error
}

// Warmer is implemented by providers that can start before they are called.
type Warmer interface {
	// Warm starts what a call will need, if it does not run, and returns at once. It is a wish: a provider that is switched
	// off or quarantined stays so.
	Warm()
}

// Restarter is implemented by providers that an operator can start anew.
type Restarter interface {
	// Restart ends a quarantine, forgets earlier failures and starts anew, once running calls are done. It returns at once.
	Restart()
}

// Request is one call as a provider gets it.
type Request struct {
	Call *tool.Call
	// Definition is the tool as the catalog has it; OwnName is what the provider calls it.
	Definition *tool.Definition
	// Host is how the running call speaks to its caller; nil functions answer "not supported".
	Host *Host
	// MaxResultBytes bounds the result; 0 means the provider's own limit. A bigger one ends as [tool.ResultTooLarge].
	MaxResultBytes int
}

// Host is what a running call may tell or ask. Any function may be nil: telling then goes nowhere, asking fails.
type Host struct {
	OnProgress func(tool.Progress)
	OnLog      func(tool.LogRecord)
	// OnAsk puts a form to the human behind the agent.
	OnAsk func(ctx context.Context, q Question) (Answer, error)
	// OnSample lets the agent's model complete something: MCP's sampling/createMessage params in, its result out.
	OnSample func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	// OnRoots lists the folders that the agent's client works in: MCP's roots/list result out.
	OnRoots func(ctx context.Context) (json.RawMessage, error)
	// OnInputs asks for several things in one question: by the asker's ids, requests in and results out. nil where they
	// can only be asked for one by one, by the functions above.
	OnInputs func(ctx context.Context, requests map[string]Input) (map[string]json.RawMessage, error)
	// OnTask says that the call goes on as a task of its server, which may take long and is looked after every poll. A caller
	// that can come back for the result then lets go of its request. The call itself stays what it was: it ends with ctx, asks
	// and tells through the host, and returns its result. nil where the caller cannot come back: a server is then not told
	// that it may make tasks (SEP-2663).
	OnTask func(ctx context.Context, poll time.Duration)
	// OnCallTool runs another tool as the agent of the running call.
	OnCallTool func(ctx context.Context, name tool.Name, args json.RawMessage) (*tool.Result, error)
	// OnDelegate makes a way to call tools as the agent of the running call, which is one of issuer, after that call.
	OnDelegate func(issuer tool.Name) *Delegate
}

// Delegate calls tools as an agent whose call has ended.
type Delegate struct {
	// Check is nil, or says why the delegate has ended for good: the agent is gone, or may no longer use the tool in whose
	// call the delegate was made.
	Check    func() error
	CallTool func(ctx context.Context, name tool.Name, args json.RawMessage) (*tool.Result, error)
}

// Progress passes a step on. Like all methods of Host it works on a nil Host.
func (h *Host) Progress(p tool.Progress) {
	if h != nil && h.OnProgress != nil {
		h.OnProgress(p)
	}
}

// Log passes a line on.
func (h *Host) Log(r tool.LogRecord) {
	if h != nil && h.OnLog != nil {
		h.OnLog(r)
	}
}

// Ask puts a question to the human behind the agent.
func (h *Host) Ask(ctx context.Context, q Question) (Answer, error) {
	if h == nil || h.OnAsk == nil {
		return Answer{}, tool.Errorf(tool.Unsupported, "the agent's client cannot ask a human; continue without an answer or tell the user what is needed")
	}
	return h.OnAsk(ctx, q)
}

// Sample lets the agent's model complete something.
func (h *Host) Sample(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	if h == nil || h.OnSample == nil {
		return nil, tool.Errorf(tool.Unsupported, "the agent's client offers no sampling; continue without its model")
	}
	return h.OnSample(ctx, params)
}

// Roots lists the folders that the agent's client works in.
func (h *Host) Roots(ctx context.Context) (json.RawMessage, error) {
	if h == nil || h.OnRoots == nil {
		return json.RawMessage(`{"roots":[]}`), nil
	}
	return h.OnRoots(ctx)
}

// CallTool runs another tool for the running call.
func (h *Host) CallTool(ctx context.Context, name tool.Name, args json.RawMessage) (*tool.Result, error) {
	if h == nil || h.OnCallTool == nil {
		return nil, tool.Errorf(tool.Unsupported, "this call cannot call other tools; give the operator's block grant = [\"call_tool\"]")
	}
	return h.OnCallTool(ctx, name, args)
}

// Delegate makes a way to call tools after the running call, which is one of issuer.
func (h *Host) Delegate(issuer tool.Name) (*Delegate, error) {
	if h == nil || h.OnDelegate == nil {
		return nil, tool.Errorf(tool.Unsupported, "this call cannot call other tools after its end; call them while it runs")
	}
	return h.OnDelegate(issuer), nil
}

// Question is a form for a human, as MCP's elicitation/create has it.
type Question struct {
	Message string
	// Schema is a flat JSON Schema object (MCP 2025-11-25, elicitation); nil means a plain yes or no.
	Schema json.RawMessage
	// URL, when set, asks the human to open a page instead of filling a form (MCP's URL mode); ID names that request.
	URL, ID string
}

// Answer is what the human did: "accept" with Content, "decline" or "cancel".
type Answer struct {
	Action  string
	Content json.RawMessage // a JSON object; nil unless accepted
}

// Binding is a tool together with the provider that runs it: what a name in an agent's view resolves to.
type Binding struct {
	Definition *tool.Definition
	Provider   Provider
}
