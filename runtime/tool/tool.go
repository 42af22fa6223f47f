// Package tool is the vocabulary of hermesd: what a tool is, what a call of it is, and what comes back.
//
// It holds values only and imports nothing but the standard library, so that every other package can speak it.
package tool

import (
	"encoding/json"
	"time"
)

// Name is the full, unique name under which agents see a tool, for example "files_read" or "mcp__github__create_issue".
// See [ValidName] for what it may hold.
type Name = string

// Source is the kind of provider that brings a tool.
type Source string

// The four kinds of provider.
const (
	SourceBuiltin    Source = "builtin"    // a plugin shipped with hermesd, or one with trust = "builtin"
	SourcePlugin     Source = "plugin"     // a third party's plugin process
	SourceMCP        Source = "mcp"        // an MCP server
	SourceConnectors Source = "connectors" // the connector gateway
)

// Coldness is what a tool declares about itself: how close at hand an agent should have it.
type Coldness string

// The three degrees of coldness.
const (
	Core     Coldness = "core"     // always in hand
	Cold     Coldness = "cold"     // a built-in that only an event calls for
	External Coldness = "external" // everything that a third party brings
)

// Annotations are a tool's claims about its own behaviour. They are hints from whoever wrote the tool: policy may use
// them, but safety must not rest on them alone. A nil pointer means that the author said nothing; [Annotations.Or]
// gives the cautious reading (the defaults of MCP 2025-06-18, ToolAnnotations).
type Annotations struct {
	ReadOnly     *bool `json:"read_only,omitempty"`
	Destructive  *bool `json:"destructive,omitempty"`
	Idempotent   *bool `json:"idempotent,omitempty"`
	OpenWorld    *bool `json:"open_world,omitempty"`
	ParallelSafe *bool `json:"parallel_safe,omitempty"`
}

// IsReadOnly reports whether the tool changes nothing; unsaid means false.
func (a Annotations) IsReadOnly() bool { return orElse(a.ReadOnly, false) }

// IsDestructive reports whether the tool may destroy something; unsaid means true unless it is read-only.
func (a Annotations) IsDestructive() bool { return !a.IsReadOnly() && orElse(a.Destructive, true) }

// IsIdempotent reports whether a second call with the same arguments changes nothing more; unsaid means false.
func (a Annotations) IsIdempotent() bool { return orElse(a.Idempotent, false) }

// IsOpenWorld reports whether the tool reaches beyond this machine; unsaid means true.
func (a Annotations) IsOpenWorld() bool { return orElse(a.OpenWorld, true) }

// IsParallelSafe reports whether two calls may run at once; unsaid means false.
func (a Annotations) IsParallelSafe() bool { return orElse(a.ParallelSafe, false) }

func orElse(b *bool, unsaid bool) bool {
	if b == nil {
		return unsaid
	}
	return *b
}

// Definition describes one tool. Definitions are shared between goroutines and never changed once published.
type Definition struct {
	Name         Name              `json:"name"`     // unique in the catalog
	OwnName      string            `json:"own_name"` // what its provider calls it
	Toolset      string            `json:"toolset,omitempty"`
	Source       Source            `json:"source"`
	SourceName   string            `json:"source_name"` // the label of the provider's block
	Title        string            `json:"title,omitempty"`
	Description  string            `json:"description,omitempty"`
	InputSchema  json.RawMessage   `json:"input_schema"`            // a JSON Schema of type object
	OutputSchema json.RawMessage   `json:"output_schema,omitempty"` // of the structured result; nil if undeclared
	Coldness     Coldness          `json:"coldness"`
	Annotations  Annotations       `json:"annotations"`
	Keywords     []string          `json:"keywords,omitempty"` // words that users search with
	Examples     []json.RawMessage `json:"examples,omitempty"`
	RequiresEnv  []string          `json:"requires_env,omitempty"`
	// Timeout bounds one call; 0 means the provider's default.
	Timeout time.Duration `json:"timeout,omitempty"`
	// MaxResultBytes bounds one result; 0 means the host's default.
	MaxResultBytes int `json:"max_result_bytes,omitempty"`
	// Icons and Meta pass through unchanged from MCP servers (JSON array and JSON object; nil if absent).
	Icons json.RawMessage `json:"icons,omitempty"`
	Meta  json.RawMessage `json:"meta,omitempty"`
}

// Call is one invocation of one real tool. A tool_call with three entries is three calls.
type Call struct {
	ID        string          // a ULID, unique for ever
	Agent     string          // who calls
	Session   string          // the conversation it belongs to, scoped to the agent
	Attended  bool            // a human can be asked
	Tool      Name            // the full name
	Arguments json.RawMessage // a JSON object
	Via       Via             // how the call arrived, for the audit
	// TraceParent is the W3C trace context of the caller ("" if none).
	TraceParent string
	// Depth is how many calls of plugins it is nested in; 0 for an agent's own call.
	Depth int
}

// Via tells how a call reached the pipeline.
type Via string

// The ways in.
const (
	ViaDirect Via = "direct" // the tool's own name
	ViaBridge Via = "bridge" // an entry of a tool_call
	ViaPlugin Via = "plugin" // a plugin's call_tool request
	ViaAdmin  Via = "admin"  // the operator's command line
)

// Progress is one step of a running call. Total 0 means unknown.
type Progress struct {
	Done  float64 `json:"done"`
	Total float64 `json:"total,omitempty"`
	Note  string  `json:"note,omitempty"`
}

// LogRecord is one line that a running call wants its caller to see.
type LogRecord struct {
	Level  string          `json:"level"` // an RFC 5424 severity as MCP names them: debug … emergency
	Logger string          `json:"logger,omitempty"`
	Data   json.RawMessage `json:"data"` // any JSON value, usually a string
}
