package pipeline

import (
	"context"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Stage is one line of the order, as operators see it.
type Stage struct {
	Name string
	May  string // what it may do to a call
}

// phase says when a stage runs.
type phase int

const (
	beforehand phase = iota // each entry of a batch before any runs
	together                // once for the whole batch, between the two
	running                 // unless the entry was refused
	afterwards              // whatever became of the entry
)

type stage struct {
	Stage
	phase phase
	run   func(*Pipeline, context.Context, *Entry) *tool.Error
}

// order is the one place that knows it. A stage joins by a line here and a file of its own.
var order = [...]stage{
	{Stage{"scope", "refuse a tool that is not in the agent's view"}, beforehand, (*Pipeline).scope},
	{Stage{"guard", "refuse by rate, concurrency or loop"}, beforehand, (*Pipeline).admit},
	{Stage{"precondition", "refuse while the provider is down or a precondition does not hold"}, beforehand, (*Pipeline).precondition},
	{Stage{"validate", "coerce arguments that do not fit, refuse those that still do not"}, beforehand, (*Pipeline).validate},
	{Stage{"pre hooks", "block, modify, ask"}, beforehand, (*Pipeline).preHooks},
	{Stage{"validate again", "refuse what a hook made invalid"}, beforehand, (*Pipeline).validateAgain},
	{Stage{"rules", "allow, ask, deny"}, beforehand, (*Pipeline).rules},
	{Stage{"approval", "wait for a human"}, together, nil},
	{Stage{"redeem", "refuse when the precondition or what was approved has changed meanwhile"}, running, (*Pipeline).redeem},
	{Stage{"audit started", "refuse when the record cannot be made durable"}, running, (*Pipeline).auditStarted},
	{Stage{"dispatch", "run the call, check its result"}, running, (*Pipeline).dispatch},
	{Stage{"post hooks", "observe, replace the result"}, afterwards, (*Pipeline).postHooks},
	{Stage{"results", "keep what is too big for the agent, give a preview"}, afterwards, (*Pipeline).results},
	{Stage{"guard count", "warn, end a loop"}, afterwards, (*Pipeline).count},
	{Stage{"audit finished", "record the outcome"}, afterwards, (*Pipeline).auditFinished},
}

// Stages lists what every call goes through, in order.
func Stages() []Stage {
	list := make([]Stage, len(order))
	for i := range order {
		list[i] = order[i].Stage
	}
	return list
}
