package bridge

import (
	"context"
	"encoding/json"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Item is one of several requests that an agent made in one breath.
type Item struct {
	// Kind is which bridge tool is meant, such as [catalog.BridgeCall]; "" is a tool by its own name.
	Kind      catalog.BridgeKind
	Name      string
	Arguments json.RawMessage
}

// Answer is what became of one Item: Err is set or Result.
type Answer struct {
	Result *tool.Result
	Err    error
}

// All answers several requests of one caller, in order. All their calls go through the pipeline as one batch, so that a
// human is asked once for all of them and those that may run side by side do. A *[Suspended] is the answer to every call.
func (b *Bridge) All(ctx context.Context, c *Caller, items []Item) []Answer {
	answers := make([]Answer, len(items))
	var entries []entry
	first := make([]int, len(items)+1) // of each item's entries
	for i, item := range items {
		var parsed []entry
		var refusal *tool.Error
		switch item.Kind {
		case catalog.BridgeSearch:
			answers[i].Result, answers[i].Err = b.Search(ctx, c, item.Arguments)
		case catalog.BridgeDescribe:
			answers[i].Result, answers[i].Err = b.Describe(ctx, c, item.Arguments)
		case catalog.BridgeCall:
			parsed, refusal = c.parseCalls(item.Arguments)
		default:
			parsed, refusal = parseDirect(item.Name, item.Arguments)
		}
		if refusal != nil {
			answers[i].Err = b.refuse(ctx, c, refusal)
		}
		entries = append(entries, parsed...)
		first[i+1] = len(entries)
	}
	slots, err := b.run(ctx, c, entries)
	for i := range items {
		switch mine := first[i+1] - first[i]; {
		case mine == 0:
		case err != nil:
			answers[i].Err = err
		case items[i].Kind == catalog.BridgeCall:
			answers[i].Result, answers[i].Err = answerCalls(slots[first[i]:first[i+1]])
		default:
			answers[i].Result, answers[i].Err = slots[first[i]].bare()
		}
	}
	return answers
}
