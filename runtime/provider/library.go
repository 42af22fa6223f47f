package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Library is implemented by providers that have resources and prompts besides tools (MCP 2025-11-25, server features).
// Everything in them passes as the bytes of the provider's server.
type Library interface {
	Provider
	// Shelf is what it has right now. It returns at once; nil where the operator switched it off.
	Shelf() *Shelf
	// Fetch reads a resource, gets a prompt or completes an argument, and returns when that has ended or ctx has. What the
	// server itself refuses is a [Refusal], everything else that goes wrong a *tool.Error.
	Fetch(ctx context.Context, req *Fetch) (json.RawMessage, error)
	// Subscribe calls updated, from any goroutine, whenever the server says that a resource changed, across restarts of the
	// server, until cancel is called. updated must return at once: nothing else that the server says is taken in meanwhile.
	// The server is asked within ctx.
	Subscribe(ctx context.Context, uri string, updated func()) (cancel func(), err error)
}

// Shelf is what a library has. It is immutable; a library publishes a new one when something changed. URIs and names are
// those that agents use.
type Shelf struct {
	// Namespace is put before the URIs of the library's own resources; "" leaves them as they are.
	Namespace string
	// Closed says that the library has nothing outside its namespace.
	Closed bool
	// Resources are MCP's Resource objects, Templates its ResourceTemplate objects, in the server's order.
	Resources, Templates []Item
	// Prompts are MCP's Prompt objects.
	Prompts []Item
	// Timeout bounds one request; 0 is the pipeline's default.
	Timeout time.Duration
}

// Item is one resource, template or prompt.
type Item struct {
	// Name is the URI, the template or the prompt's name as agents see it; Own is what the server calls it.
	Name, Own string
	// Raw is the object, with Name in the place of Own.
	Raw json.RawMessage
}

// The methods of [Fetch], and that of subscriptions.
const (
	ReadResource = "resources/read"
	GetPrompt    = "prompts/get"
	Complete     = "completion/complete"
	Subscribe    = "resources/subscribe"
)

// Fetch is one request to a library.
type Fetch struct {
	Method string
	// Name is the server's own URI or prompt name, which it may check or repeat in headers.
	Name string
	// Namespace is put before the URIs of a resource's contents; "" leaves them as they are.
	Namespace string
	// Params are MCP's params of the method with the server's own names, without _meta.
	Params json.RawMessage
	// Agent and Session say whose request it is.
	Agent, Session string
	// Host is how the request reaches its caller; nil if it cannot.
	Host *Host
}

// Refusal is a JSON-RPC error with which a library's server answered.
type Refusal struct {
	Code    int64
	Message string
	Data    json.RawMessage
}

func (e *Refusal) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Input is one request of a server to the agent's client: elicitation/create, sampling/createMessage or roots/list.
type Input struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}
