package pipeline

import (
	"encoding/json"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/schema"
	"github.com/hermesd/hermesd/runtime/tool"
)

// View is what one agent may see of the catalog. Resolve fails with a *tool.Error that says what to do instead.
type View interface {
	Resolve(name tool.Name) (*provider.Binding, error)
}

// Request is one call to be made.
type Request struct {
	View View
	// Call is not changed; an empty ID is filled in on the way, empty Arguments mean {}.
	Call *tool.Call
	// Host is how the running call reaches its caller; nil if it cannot.
	Host *provider.Host
	// Resume is what a client brought back with a call that waited for a human's answer ("" if it brought nothing).
	Resume string
	// Suspendable clients bring the whole batch back with a human's answer, instead of being asked while it waits. See
	// [Outcome.Suspended].
	Suspendable bool
	// Whole keeps the result in one piece, however big it is.
	Whole bool
	// Explain asks for [Outcome.Steps].
	Explain bool
}

// Outcome is how one call ended: either Result or Err is set.
type Outcome struct {
	Result *tool.Result
	Err    *tool.Error
	// Call is the call as it was made: with its ID and with the arguments that the provider got.
	Call *tool.Call
	// Coerced lists what was changed in the arguments to make them fit the schema.
	Coerced []schema.Change
	// Notes are for the agent beside the result, such as the guard's warnings.
	Notes []string
	// Suspended is set on every entry of a batch of which nothing ran, because the client has to bring the whole batch
	// back with an answer: what to ask, in the broker's form.
	Suspended json.RawMessage
	Duration  time.Duration
	// Steps are what each stage did, in order, if the request asked for that.
	Steps []Step
}

// Entry is one call on its way through the stages: what they know about it so far.
type Entry struct {
	Request    *Request
	Call       *tool.Call // a copy, with the arguments as they would be run now
	Definition *tool.Definition
	Provider   provider.Provider
	// Arguments are Call.Arguments decoded, numbers as json.Number. Nobody changes them.
	Arguments map[string]any
	Coerced   []schema.Change
	// Verdict and Decision are what the hooks and the rules said, Answer what the human did.
	Verdict  Verdict
	Decision Decision
	Answer   Answer

	started    time.Time
	leave      func() // what the guard wants to hear when the call is over
	dispatched bool
	out        Outcome
}
