// Package pipeline takes one call from a name and arguments to a result, stage by stage.
//
// The order of the stages is data, the same for direct calls, bridged calls and each entry of a batch. A stage gets the
// [Entry] and may refuse it; nothing reaches back. What an operator plugs in (guard, hooks, rules, approvals, audit,
// results) enters through the interfaces of this package; a nil one lets everything pass.
package pipeline
