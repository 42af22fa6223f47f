package hooks

import (
	"encoding/json"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Event is a moment at which hooks run.
type Event string

// The events.
const (
	PreCall           Event = "pre_call"           // may block, modify, ask
	PostCall          Event = "post_call"          // observes
	TransformResult   Event = "transform_result"   // may replace the result or withhold it
	ApprovalRequested Event = "approval_requested" // observes
	ApprovalDecided   Event = "approval_decided"   // observes
	ProviderState     Event = "provider_state"     // observes
)

func (e Event) known() bool {
	switch e {
	case PreCall, PostCall, TransformResult, ApprovalRequested, ApprovalDecided, ProviderState:
		return true
	}
	return false
}

// Call is a call as hooks see it: always the real tool.
type Call struct {
	*tool.Call
	Definition *tool.Definition
}

// Outcome is how a call ended: Result or Err is set.
type Outcome struct {
	Result   *tool.Result
	Err      *tool.Error
	Duration time.Duration
}

// Approval is what hooks learn about an approval. Choice, By and Note are set once it was decided.
type Approval struct {
	ID      string   `json:"id"`
	Rule    string   `json:"rule,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Choices []string `json:"choices,omitempty"`
	Choice  string   `json:"choice,omitempty"` // once, session, always, deny; "" if nobody answered
	By      string   `json:"by,omitempty"`
	Note    string   `json:"note,omitempty"` // why it was denied, or why nobody answered
}

// Provider is what hooks learn about a provider that changed its state.
type Provider struct {
	Name   string      `json:"name"`
	Source tool.Source `json:"source"`
	State  string      `json:"state"`
	Reason string      `json:"reason,omitempty"`
}

// payload is the JSON object that a hook reads. Keys that an event does not have are left out.
type payload struct {
	Event       Event             `json:"event"`
	CallID      string            `json:"call_id,omitempty"`
	Tool        tool.Name         `json:"tool_name,omitempty"`
	Toolset     string            `json:"toolset,omitempty"`
	Source      tool.Source       `json:"source,omitempty"`
	SourceName  string            `json:"source_name,omitempty"`
	Args        json.RawMessage   `json:"args,omitempty"`
	Agent       string            `json:"agent,omitempty"`
	Session     string            `json:"session_id,omitempty"`
	Annotations *tool.Annotations `json:"annotations,omitempty"`
	Dir         string            `json:"cwd,omitempty"`
	Result      *tool.Result      `json:"result,omitempty"`
	DurationMS  *int64            `json:"duration_ms,omitempty"`
	Status      tool.Outcome      `json:"status,omitempty"`
	Error       *tool.Error       `json:"error,omitempty"`
	Approval    *Approval         `json:"approval,omitempty"`
	Provider    *Provider         `json:"provider,omitempty"`
}

func (c *Chain) describe(event Event, call *Call, args json.RawMessage) *payload {
	p := &payload{Event: event, CallID: call.ID, Tool: call.Tool, Args: args, Agent: call.Agent, Session: call.Session, Dir: c.dir}
	if d := call.Definition; d != nil {
		p.Tool, p.Toolset, p.Source, p.SourceName, p.Annotations = d.Name, d.Toolset, d.Source, d.SourceName, &d.Annotations
	}
	return p
}

func (p *payload) ended(out *Outcome) {
	ms := out.Duration.Milliseconds()
	p.Result, p.Error, p.DurationMS = out.Result, out.Err, &ms
	switch {
	case out.Err != nil:
		p.Status = tool.OutcomeOf(out.Err.Code)
	case out.Result != nil && out.Result.IsError:
		p.Status = tool.OutcomeError
	default:
		p.Status = tool.OutcomeOK
	}
}
