package frontend

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Pipeline runs calls and gives one outcome for each, in order.
type Pipeline interface {
	Do(ctx context.Context, reqs []*pipeline.Request) []pipeline.Outcome
}

// Fetch is a request for what a library has besides tools: a resource, a prompt, a completion or a subscription. It
// passes the pipeline as a call of the tool that [provider.MethodDefinition] describes.
type Fetch struct {
	Agent *disclosure.Agent
	// Session is the conversation, as [Desk.Session] gives it.
	Session string
	// Library has what is asked for; nil if none of the agent's has. Then Unknown is why, and the request is refused with
	// it, and on record.
	Library provider.Library
	Unknown error
	Method  string
	// Params are MCP's params of the method, without _meta and with the server's own names.
	Params json.RawMessage
	// Do asks the library, with the params as hooks left them. It gives a JSON object, or nil for a method without a result.
	Do func(ctx context.Context, call *tool.Call, host *provider.Host) (json.RawMessage, error)

	// As in [Call].
	Host        *provider.Host
	TraceParent string
	Suspendable bool
	Resume      string
}

// Fetch runs a request of a library to its end. Where a human has to be asked first and the client can bring the request
// back, nothing runs and ask is what to ask, in the form of the approval broker. What goes wrong is a *tool.Error.
func (d *Desk) Fetch(ctx context.Context, f *Fetch) (raw, ask json.RawMessage, err error) {
	if refused := d.drain.enter(false); refused != nil {
		return nil, nil, refused
	}
	defer d.drain.leave()
	name := f.Method
	var definition *tool.Definition
	if f.Library != nil {
		definition = d.methods.of(f.Library, f.Method)
		name = definition.Name
	}
	outs := d.Pipeline.Do(ctx, []*pipeline.Request{{
		View: &errand{f, d.Disclosure.For(f.Agent).View, definition},
		Call: &tool.Call{
			Agent: f.Agent.Name, Session: f.Session, Attended: f.Agent.Attended, Tool: name, Arguments: f.Params,
			Via: tool.ViaDirect, TraceParent: f.TraceParent,
		},
		Host: f.Host, Whole: true, Suspendable: f.Suspendable, Resume: f.Resume,
	}})
	if len(outs) != 1 {
		return nil, nil, tool.Errorf(tool.Internal, "%s got no answer inside hermesd; tell the operator", name)
	}
	switch out := &outs[0]; {
	case out.Suspended != nil:
		return nil, out.Suspended, nil
	case out.Err != nil:
		return nil, nil, out.Err
	case out.Result == nil || out.Result.IsError || !rawjson.IsObject(out.Result.Structured):
		return nil, nil, tool.Errorf(tool.BadAnswer, "%s ran, but what came of it is no answer to that method; tell the operator, whose hook may have replaced it", name)
	default:
		return out.Result.Structured, nil, nil
	}
}

// errand is what one request of a library is to the pipeline: a view that holds nothing else, and the provider behind it.
type errand struct {
	fetch      *Fetch
	view       *catalog.View
	definition *tool.Definition
}

// Resolve implements [pipeline.View].
func (e *errand) Resolve(tool.Name) (*provider.Binding, error) {
	if e.fetch.Library == nil {
		return nil, tool.Errorf(tool.UnknownTool, "%w", e.fetch.Unknown)
	}
	for _, l := range e.view.Libraries() {
		if l == e.fetch.Library {
			return &provider.Binding{Definition: e.definition, Provider: &asked{l, e.fetch}}, nil
		}
	}
	return nil, tool.Errorf(tool.UnknownTool, "%s is not granted to this agent any more; list again what there is", e.definition.Name)
}

// asked is a library that is called by a method in the place of a tool.
type asked struct {
	provider.Library
	fetch *Fetch
}

// Invoke implements [provider.Provider].
func (a *asked) Invoke(ctx context.Context, req *provider.Request) (*tool.Result, error) {
	raw, err := a.fetch.Do(ctx, req.Call, req.Host)
	if refusal := (*provider.Refusal)(nil); errors.As(err, &refusal) {
		refused := tool.Errorf(tool.DownstreamFailed, "%w", refusal)
		refused.Message = refusal.Message // the code stays in the refusal, for those who can pass it on
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	return &tool.Result{Content: []tool.Content{}, Structured: raw}, nil
}

// methods keeps the definitions of libraries' methods: rules decide once for each of them. There are a few for each
// provider of the configuration.
type methods struct{ known sync.Map } // methodKey -> *tool.Definition

type methodKey struct {
	source       tool.Source
	name, method string
}

func (m *methods) of(l provider.Library, method string) *tool.Definition {
	id := l.Identity()
	key := methodKey{id.Source, id.Name, method}
	if d, ok := m.known.Load(key); ok {
		return d.(*tool.Definition)
	}
	d, _ := m.known.LoadOrStore(key, provider.MethodDefinition(l, method))
	return d.(*tool.Definition)
}

// Describe finds a tool of an agent by its name, or a method of one of its libraries.
func (d *Desk) Describe(agent *disclosure.Agent, name string) (*tool.Definition, error) {
	view := d.Disclosure.For(agent).View
	entry, err := view.Find(name)
	if err == nil {
		return entry.Definition, nil
	}
	for _, l := range view.Libraries() {
		if l.Shelf() == nil {
			continue
		}
		for _, method := range provider.Methods() {
			if m := d.methods.of(l, method); m.Name == name {
				return m, nil
			}
		}
	}
	return nil, err
}
