package pipeline

import (
	"context"

	"github.com/hermesd/hermesd/runtime/tool"
)

// phase says when a stage runs.
type phase int

const (
	beforehand phase = iota // each entry of a batch before any runs
	together                // once for the whole batch, between the two
	running                 // unless the entry was refused
	afterwards              // whatever became of the entry
)

type stage struct {
	name  string
	may   string // what it may do to a call, for operators
	phase phase
	run   func(*Pipeline, context.Context, *Entry) *tool.Error
}

// order is the one place that knows it. A stage joins by a line here and a file of its own.
var order = [...]stage{
	{"scope", "refuse a tool that is not in the agent's view", beforehand, (*Pipeline).scope},
	{"guard", "refuse by rate, concurrency or loop", beforehand, (*Pipeline).admit},
	{"precondition", "refuse while the provider is down or a precondition does not hold", beforehand, (*Pipeline).precondition},
	{"validate", "coerce arguments that do not fit, refuse those that still do not", beforehand, (*Pipeline).validate},
	{"pre hooks", "block, modify, ask", beforehand, (*Pipeline).preHooks},
	{"validate again", "refuse what a hook made invalid", beforehand, (*Pipeline).validateAgain},
	{"rules", "allow, ask, deny", beforehand, (*Pipeline).rules},
	{"approval", "wait for a human", together, nil},
	{"redeem", "refuse when the precondition or what was approved has changed meanwhile", running, (*Pipeline).redeem},
	{"audit started", "refuse when the record cannot be made durable", running, (*Pipeline).auditStarted},
	{"dispatch", "run the call, check its result", running, (*Pipeline).dispatch},
	{"post hooks", "observe, replace the result", afterwards, (*Pipeline).postHooks},
	{"results", "keep what is too big for the agent, give a preview", afterwards, (*Pipeline).results},
	{"guard count", "warn, end a loop", afterwards, (*Pipeline).count},
	{"audit finished", "record the outcome", afterwards, (*Pipeline).auditFinished},
}

// Stages lists what every call goes through, in order: each stage's name and what it may do.
func Stages() []string {
	list := make([]string, len(order))
	for i, s := range order {
		list[i] = s.name + ": " + s.may
	}
	return list
}
