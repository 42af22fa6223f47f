// Package bridge is the three tools through which an agent reaches everything that is not in its own list: search,
// describe and call.
//
// What agents send is read generously, because models misspell shapes in a small number of ways that are known by now,
// and answered strictly: one JSON object with its keys in a fixed order. A tool_call becomes one call for each entry, and
// every call, bridged or direct, goes through the same pipeline.
//
// All methods return either a result or a *[tool.Error], whose JSON is what the agent reads, or a [*Suspended].
package bridge

import (
	"context"
	"encoding/json"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/hermesd/hermesd/search"
)

// Pipeline runs calls and gives one outcome for each, in order.
type Pipeline interface {
	Do(ctx context.Context, reqs []*pipeline.Request) []pipeline.Outcome
}

// Searcher ranks the tools of a view and gives one group for each query, in order.
type Searcher interface {
	Search(ctx context.Context, r *SearchRequest) ([]search.Group, error)
}

// SearchRequest is what a Searcher is asked.
type SearchRequest struct {
	Agent, Session string
	View           *catalog.View
	Queries        []string
	Limit          int // most hits for each query
	// Extra are, for each query, tools that are not in the view and rank in the same pass; nil is none.
	Extra [][]search.Document
	// Explain asks for the reasons. An explanation is no use of a tool: nothing is learned from it.
	Explain bool
}

// Options configures a Bridge.
type Options struct {
	Pipeline Pipeline // required
	// Search may be nil: every search then answers that it is not available.
	Search Searcher
	// Connectors may be nil: there are no hosted tools then.
	Connectors Connectors
	// Refused hears of every request that ended before it became a call, so that an endless stream of malformed ones ends
	// too. What it returns is answered; nil answers the refusal itself. The function may be nil.
	Refused func(ctx context.Context, c *Caller, refusal *tool.Error) *tool.Error
}

// Bridge answers the three bridge tools and direct calls. It keeps no state and may be used from any goroutine.
type Bridge struct {
	pipeline   Pipeline
	search     Searcher
	connectors Connectors
	refused    func(ctx context.Context, c *Caller, refusal *tool.Error) *tool.Error
}

// New returns a Bridge.
func New(opts *Options) *Bridge {
	return &Bridge{pipeline: opts.Pipeline, search: opts.Search, connectors: opts.Connectors, refused: opts.Refused}
}

// Shown tells which tools are kept out of the agent's own list; *disclosure.Assembly does.
type Shown interface {
	Deferred(name tool.Name) bool
}

// Caller is who asks, and what he may see. It is made for one request.
type Caller struct {
	Agent    string
	Session  string
	Attended bool
	// View is what the agent may use.
	View *catalog.View
	// Searchable is the part of View that a search ranks; nil is all of it.
	Searchable *catalog.View
	// Shown is nil where nothing is deferred.
	Shown Shown
	// Names are what the bridge tools are called here; empty ones have their reserved names.
	Names catalog.BridgeNames
	// DirectCall is "explain" to answer a direct call of a deferred tool, and a tool_call of a listed one, with the right
	// way to call it. Everything else runs them.
	DirectCall string
	// DefaultLimit and MaxLimit bound the matches of a query; 0 is 5 and 20.
	DefaultLimit, MaxLimit int
	// Host is how a running call reaches the caller; nil if it cannot.
	Host *provider.Host
	// TraceParent is the W3C trace context of the caller ("" if none).
	TraceParent string
	// Via is how the call arrived; "" is ViaBridge for an entry of a tool_call and ViaDirect for a direct call.
	Via tool.Via
	// Depth is how many calls of plugins the request is nested in.
	Depth int
	// Resume is what the client brought back with a request that was suspended.
	Resume string
	// Suspendable clients bring a request back with a human's answer, see [Suspended].
	Suspendable bool
	// Explain hears what the pipeline did with the calls of the request, in their order. It may be nil.
	Explain func([]pipeline.Outcome)
}

func (c *Caller) searchable() *catalog.View {
	if c.Searchable == nil {
		return c.View
	}
	return c.Searchable
}

func (c *Caller) deferred(name tool.Name) bool { return c.Shown != nil && c.Shown.Deferred(name) }

func (c *Caller) explains() bool { return c.DirectCall == "explain" }

// Suspended says that nothing of a request ran, because the client has to bring it back with a human's answer.
type Suspended struct {
	// Payload is what to ask, in the form of the approval broker.
	Payload json.RawMessage
}

func (s *Suspended) Error() string { return "a human is asked before anything runs" }

// refuse ends a request that never became a call.
func (b *Bridge) refuse(ctx context.Context, c *Caller, refusal *tool.Error) *tool.Error {
	if b.refused == nil {
		return refusal
	}
	if instead := b.refused(ctx, c, refusal); instead != nil {
		return instead
	}
	return refusal
}
