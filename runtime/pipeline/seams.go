package pipeline

import (
	"context"
	"encoding/json"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Action is what a hook or a rule wants with a call.
type Action string

// The actions; "" is Allow.
const (
	Allow Action = "allow"
	Ask   Action = "ask"
	Deny  Action = "deny" // a hook's "block"
)

// Guard bounds what one agent may do.
type Guard interface {
	// Admit lets a call in or refuses it. A leave that is not nil is called once when an admitted call is over.
	Admit(ctx context.Context, e *Entry) (leave func(), err *tool.Error)
	// Count hears of every call's end, whichever stage refused it. It may add a note to the outcome, or put
	// [tool.LoopBlocked] in the place of a refusal that was repeated too often.
	Count(e *Entry, out *Outcome)
}

// Verdict is what the pre hooks said together.
type Verdict struct {
	Action    Action
	Hook      string // which hook asked or blocked
	Message   string
	RuleKey   string          // which standing grant would cover an Ask; "" offers none
	Arguments json.RawMessage // the changed arguments; nil if no hook changed any
}

// Hooks is an operator's code before and after a call.
type Hooks interface {
	// Before runs the pre hooks. An error is a hook that had to run and could not.
	Before(ctx context.Context, e *Entry) (Verdict, *tool.Error)
	// After runs the post hooks, each once, also after an error. It may replace out.Result.
	After(ctx context.Context, e *Entry, out *Outcome)
}

// Decision is what the rules say.
type Decision struct {
	Action Action
	Rule   string   // its name, file and line
	Key    string   // what grants are bound to: the rule's name
	Reason string   // for the human who is asked and the agent that is refused
	Grants []string // what the human may choose
	Floor  bool     // no grant and no mode overrides it
	Policy string   // the version of the policy that decided
}

// Rules is the operator's policy.
type Rules interface {
	Decide(ctx context.Context, e *Entry) Decision
}

// Answer is what became of an approval. The zero value refuses nothing and approves nothing: the entry was not asked about.
type Answer struct {
	ID string // the approval's
	By string // who answered, by which channel
	// Err refuses the call.
	Err *tool.Error
	// Suspend holds back the whole batch: the client will bring it back. See [Outcome.Suspended].
	Suspend json.RawMessage
}

// Approvals asks humans.
type Approvals interface {
	// Ask puts all entries that need it to a human at once and returns one answer for each, in order.
	Ask(ctx context.Context, entries []*Entry) []Answer
	// Redeem uses an answer up, directly before its call runs. It refuses when anything that the approval is bound to
	// has changed, or when it was used before.
	Redeem(ctx context.Context, e *Entry) *tool.Error
}

// Audit records calls.
type Audit interface {
	// Started returns when the record is durable.
	Started(ctx context.Context, r *tool.Record) error
	// Finished takes the record and does not wait for it.
	Finished(r *tool.Record)
}

// Results keeps results that are too big for an agent.
type Results interface {
	// Fit returns r, or a preview of it with an id by which the agent gets the rest.
	Fit(ctx context.Context, e *Entry, r *tool.Result) (*tool.Result, *tool.Error)
}
