package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"

	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// slot is the place of one entry in the answer.
type slot struct {
	name    tool.Name // the full name where the tool is known, else what was given
	source  tool.Source
	outcome pipeline.Outcome
}

// Call answers tool_call. One local entry is answered with the tool's own result; everything else with an envelope that
// has a slot for each entry, in order.
func (b *Bridge) Call(ctx context.Context, c *Caller, args json.RawMessage) (*tool.Result, error) {
	entries, refusal := c.parseCalls(args)
	if refusal != nil {
		return nil, b.refuse(ctx, c, refusal)
	}
	slots, err := b.run(ctx, c, entries)
	if err != nil {
		return nil, err
	}
	return answerCalls(slots)
}

func answerCalls(slots []slot) (*tool.Result, error) {
	if len(slots) == 1 && slots[0].source != tool.SourceConnectors {
		return slots[0].bare()
	}
	return envelope(slots)
}

// Direct answers a call by a tool's own name.
func (b *Bridge) Direct(ctx context.Context, c *Caller, name string, args json.RawMessage) (*tool.Result, error) {
	entries, refusal := parseDirect(name, args)
	if refusal != nil {
		return nil, b.refuse(ctx, c, refusal)
	}
	slots, err := b.run(ctx, c, entries)
	if err != nil {
		return nil, err
	}
	return slots[0].bare()
}

func parseDirect(name string, args json.RawMessage) ([]entry, *tool.Error) {
	arguments, err := value(args)
	if err == nil {
		arguments, err = toolArguments(arguments)
	}
	if err != nil {
		return nil, tool.Errorf(tool.BadRequest, "nothing was run: the arguments are %w", err)
	}
	return []entry{{name, arguments, tool.ViaDirect}}, nil
}

// run brings entries through the pipeline. An entry whose name means nothing goes there too, so that its refusal is
// guarded and recorded like every other.
func (b *Bridge) run(ctx context.Context, c *Caller, entries []entry) ([]slot, error) {
	slots := make([]slot, len(entries))
	reqs := make([]*pipeline.Request, 0, len(entries))
	places := make([]int, 0, len(entries)) // of the requests in slots
	for i, e := range entries {
		s := &slots[i]
		s.name = clip(e.name)
		var view pipeline.View = c.View
		if found, err := c.View.Find(e.name); err != nil {
			view = unresolved{err}
		} else {
			s.name, s.source = found.Definition.Name, found.Definition.Source
			if s.outcome.Err = c.explain(s.name, e.arguments, e.via); s.outcome.Err != nil {
				continue
			}
		}
		places = append(places, i)
		reqs = append(reqs, &pipeline.Request{
			View: view, Host: c.Host, Resume: c.Resume, Suspendable: c.Suspendable, Explain: c.Explain != nil,
			Call: &tool.Call{
				Agent: c.Agent, Session: c.Session, Attended: c.Attended, Tool: s.name, Arguments: e.arguments,
				Via: cmp.Or(c.Via, e.via), TraceParent: c.TraceParent, Depth: c.Depth,
			},
		})
	}
	if len(reqs) == 0 {
		return slots, nil
	}
	outcomes := b.pipeline.Do(ctx, reqs)
	if c.Explain != nil {
		c.Explain(outcomes)
	}
	for i, place := range places {
		s := &slots[place]
		if i >= len(outcomes) || outcomes[i].Err == nil && outcomes[i].Result == nil {
			s.outcome.Err = tool.Errorf(tool.Internal, "%s got no answer inside hermesd; it may have run, so look before you repeat it", s.name)
			continue
		}
		if payload := outcomes[i].Suspended; payload != nil {
			return nil, &Suspended{payload}
		}
		s.outcome = outcomes[i]
		if err := s.outcome.Err; err != nil && err.Code == tool.UnknownTool {
			s.outcome.Err = with(err, "hint", "find tools with "+c.Names.OrDefault().Search)
		}
	}
	return slots, nil
}

// unresolved is the view of an entry whose name is known to mean nothing: suggestions are not worked out twice.
type unresolved struct{ err error }

func (u unresolved) Resolve(tool.Name) (*provider.Binding, error) { return nil, u.err }

// explain refuses what the operator wants called another way; nil lets it run.
func (c *Caller) explain(name tool.Name, arguments json.RawMessage, via tool.Via) *tool.Error {
	if !c.explains() || c.deferred(name) == (via == tool.ViaBridge) {
		return nil
	}
	if via == tool.ViaBridge {
		return tool.Errorf(tool.CallDirectly, "%s is in your own list; call it directly, by its own name", name)
	}
	bridge := c.Names.OrDefault().Call
	err := tool.Errorf(tool.CallThroughBridge, "%s exists and is reached through %s", name, bridge)
	if len(arguments) > maxEcho {
		return err
	}
	return err.With("instead", map[string]any{
		"name":      bridge,
		"arguments": map[string]any{"calls": []any{map[string]any{"name": name, "arguments": arguments}}},
	})
}

// maxEcho is how many bytes of arguments are handed back in a call that is ready to send.
const maxEcho = 4096

// with returns a copy of err with one more key.
func with(err *tool.Error, key string, value any) *tool.Error {
	c := *err
	c.Extra = maps.Clone(err.Extra)
	return c.With(key, value)
}
